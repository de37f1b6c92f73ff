// node:os.

const os = host.ops("os");
const facts = () => JSON.parse(os.facts());

module.exports = {
  EOL: "\n",
  devNull: "/dev/null",
  homedir: () => process.env.HOME || facts().home,
  tmpdir: () => (process.env.TMPDIR || process.env.TMP || process.env.TEMP || "/tmp").replace(/(.)\/$/, "$1"),
  hostname: () => facts().hostname,
  platform: () => process.platform,
  type: () => ({ linux: "Linux", darwin: "Darwin", win32: "Windows_NT" })[process.platform] ?? process.platform,
  arch: () => process.arch,
  machine: () => ({ x64: "x86_64", arm64: "aarch64" })[process.arch] ?? process.arch,
  release: () => facts().release,
  version: () => facts().release,
  endianness: () => "LE",
  uptime: () => facts().uptime,
  loadavg: () => facts().load,
  totalmem: () => facts().totalMemory,
  freemem: () => facts().freeMemory,
  cpus: () => Array.from({ length: facts().cpus }, () => ({ model: "cpu", speed: 0, times: { user: 0, nice: 0, sys: 0, idle: 0, irq: 0 } })),
  availableParallelism: () => facts().cpus,
  networkInterfaces: () => ({}),
  userInfo: () => {
    const { home, user, shell } = facts();
    return { username: user, uid: process.getuid(), gid: process.getgid(), shell, homedir: home };
  },
  getPriority: () => 0,
  setPriority: () => {},
  get constants() {
    return require("internal/os-constants");
  },
};
