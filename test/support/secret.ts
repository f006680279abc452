// A signing secret for tests, in the environment, where endpoints refer to it.

const NAME = 'OUTLEDGER_TEST_SECRET'

/** Reference to a fixed secret; set for this process and the ones it starts. */
export function testSecret(): string {
  process.env[NAME] = testSecretValue
  return `env:${NAME}`
}

export const testSecretValue = `whsec_${Buffer.from('a secret that only tests ever use').toString('base64')}`
