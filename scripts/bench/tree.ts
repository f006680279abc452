// The sources as they were at a commit, in a folder of their own, beside the packages that are installed here.
import { execFileSync } from 'node:child_process'
import { realpathSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'

/** Whatever runs there in TypeScript runs as it did then. Throws where git does not know the commit. */
export function extractTree(commit: string, folder: string): void {
  const archive = join(folder, 'tree.tar')
  execFileSync('git', ['archive', `--output=${archive}`, commit], { stdio: ['ignore', 'ignore', 'pipe'] })
  execFileSync('tar', ['-xf', archive, '-C', folder])
  symlinkSync(realpathSync('node_modules'), join(folder, 'node_modules'))
}
