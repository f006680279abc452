// The package as npm would publish it, installed into an empty project: its own files, and beside it only what it depends on.
import { type ExecFileException, execFile } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after } from 'node:test'
import { promisify } from 'node:util'

const root = process.cwd()
/** A command of ours, by its name in node_modules/.bin. */
export const bin = (name: string): string => join(root, 'node_modules/.bin', name)

// Started under npm or npx itself: its settings for us (which package, which command) are not those of the app.
const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)))

/** The environment of a project of its own, where nothing is downloaded. */
export const environment = { ...inherited, DATABASE_URL: '', npm_config_offline: 'true' }

export interface Output {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Run to its end; a failure is an answer too. */
export function output(
  file: string,
  args: readonly string[],
  { cwd, env = environment }: { cwd: string; env?: NodeJS.ProcessEnv },
) {
  return promisify(execFile)(file, args, { maxBuffer: 1e8, cwd, env }).then(
    ({ stdout, stderr }): Output => ({ code: 0, stdout, stderr }),
    (error: ExecFileException & { stdout: string; stderr: string }): Output => ({
      code: Number(error.code),
      stdout: error.stdout,
      stderr: error.stderr,
    }),
  )
}

interface Manifest {
  readonly name: string
  readonly bin: Record<string, string>
  readonly exports: Record<string, string | Record<string, string>>
  readonly dependencies: Record<string, string>
  readonly peerDependencies: Record<string, string>
}

export interface Installed {
  readonly tarball: string
  /** Paths in the tarball. */
  readonly files: readonly string[]
  readonly manifest: Manifest
  /** The project that it is installed into. */
  readonly app: string
}

export async function installedPackage(): Promise<Installed> {
  const folder = await mkdtemp(join(tmpdir(), 'outledger-package-'))
  after(() => rm(folder, { recursive: true, force: true }))
  const packed = await output('npm', ['pack', '--json', '--pack-destination', folder], { cwd: root })
  if (packed.code !== 0) throw new Error(packed.stderr)
  const [{ filename, files }] = JSON.parse(packed.stdout.slice(packed.stdout.indexOf('[\n')))
  const tarball = join(folder, filename)
  const app = join(folder, 'app')
  const modules = join(app, 'node_modules')
  const home = join(modules, 'outledger')
  await mkdir(home, { recursive: true })
  const unpacked = await output('tar', ['-xzf', tarball, '-C', home, '--strip-components=1'], { cwd: folder })
  if (unpacked.code !== 0) throw new Error(unpacked.stderr)
  const manifest = JSON.parse(await readFile(join(home, 'package.json'), 'utf8')) as Manifest
  const link = async (target: string, name: string) => {
    await mkdir(dirname(join(modules, name)), { recursive: true })
    await symlink(target, join(modules, name))
  }
  // @types/node is what an app on Node brings.
  for (const name of [...Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }), '@types/node'])
    await link(join(root, 'node_modules', name), name)
  for (const [name, path] of Object.entries(manifest.bin)) {
    await chmod(join(home, path), 0o755)
    await link(join(home, path), `.bin/${name}`)
  }
  return { tarball, files: files.map(({ path }: { path: string }) => path), manifest, app }
}
