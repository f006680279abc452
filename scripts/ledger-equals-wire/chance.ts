// Chance that can be repeated: the same seed and the same words give the same draw, in whatever order they are asked for.
import { createHash } from 'node:crypto'

export type Chance = (...words: readonly (string | number)[]) => number

/** Draws from 0 up to 1. */
export const chanceOf =
  (seed: number): Chance =>
  (...words) =>
    createHash('sha256')
      .update(`${seed} ${words.join(' ')}`)
      .digest()
      .readUIntBE(0, 6) /
    2 ** 48

/** A whole number from `from` to `to`. */
export const between = (draw: number, from: number, to: number): number => from + Math.floor(draw * (to - from + 1))

export const oneOf = <T>(draw: number, values: readonly T[]): T => values[Math.floor(draw * values.length)] as T

/** The name in whose share of the whole the draw falls; null in what is left over. */
export function shareOf<T extends string>(draw: number, shares: Readonly<Record<T, number>>): T | null {
  let point = draw
  for (const name of Object.keys(shares) as T[]) {
    if (point < shares[name]) return name
    point -= shares[name]
  }
  return null
}
