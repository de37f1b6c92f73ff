// node:dns: addresses of names, as the system knows them. Other records need a resolver of their own and are not there.

const ops = require("internal/ops");
const owners = require("internal/owners");
const native = host.ops("net");

const notFound = (name, syscall) => Object.assign(new Error(`${syscall} ENOTFOUND ${name}`), { code: "ENOTFOUND", errno: -3008, syscall, hostname: name });

// Every address of a name, of one family if one is asked for.
async function addresses(name, family, syscall) {
  const done = owners.pauseBudget(owners.now());
  try {
    const found = await ops.begin((op) => native.lookup(op, String(name))).promise;
    const list = found.map(({ address, family }) => ({ address, family: family === "IPv6" ? 6 : 4 })).filter((each) => !family || each.family === family);
    if (list.length === 0) throw notFound(name, syscall);
    return list;
  } finally {
    done();
  }
}

const familyOf = (options) => {
  const family = typeof options === "number" ? options : options?.family;
  return family === "IPv4" ? 4 : family === "IPv6" ? 6 : Number(family) || 0;
};

const promises = {
  async lookup(name, options) {
    const list = await addresses(name, familyOf(options), "getaddrinfo");
    return options?.all ? list : list[0];
  },
  resolve4: async (name) => (await addresses(name, 4, "queryA")).map(({ address }) => address),
  resolve6: async (name) => (await addresses(name, 6, "queryAaaa")).map(({ address }) => address),
  async resolve(name, type = "A") {
    if (type === "A") return promises.resolve4(name);
    if (type === "AAAA") return promises.resolve6(name);
    throw owners.unavailable(`dns.resolve(…, "${type}")`);
  },
  getServers: () => [],
  setServers: () => {},
};

const withCallback =
  (call, spread) =>
  (...args) => {
    const callback = args.pop();
    if (typeof callback !== "function") throw Object.assign(new TypeError('The "callback" argument must be of type function'), { code: "ERR_INVALID_ARG_TYPE" });
    call(...args).then((result) => callback(null, ...spread(result)), callback);
  };

const missing = ["reverse", "resolveMx", "resolveTxt", "resolveSrv", "resolveNs", "resolveCname", "resolveSoa", "resolvePtr", "resolveAny", "resolveCaa", "lookupService", "resolveNaptr", "resolveTlsa"];
const refusals = (prefix) => Object.fromEntries(missing.map((name) => [name, owners.refusal(`${prefix}.${name}`)]));

const codes = { NOTFOUND: "ENOTFOUND", EOF: "EOF" };
for (const name of ["NODATA", "FORMERR", "SERVFAIL", "NOTIMP", "REFUSED", "BADQUERY", "BADNAME", "BADFAMILY", "BADRESP", "CONNREFUSED", "TIMEOUT", "FILE", "NOMEM", "DESTRUCTION", "BADSTR", "BADFLAGS", "NONAME", "BADHINTS", "NOTINITIALIZED", "LOADIPHLPAPI", "ADDRGETNETWORKPARAMS", "CANCELLED"]) codes[name] = `E${name}`;
const order = { setDefaultResultOrder: () => {}, getDefaultResultOrder: () => "verbatim" };

const one = (result) => [result];
module.exports = {
  ...refusals("dns"),
  lookup: withCallback(promises.lookup, (result) => (Array.isArray(result) ? [result] : [result.address, result.family])),
  resolve: withCallback(promises.resolve, one),
  resolve4: withCallback(promises.resolve4, one),
  resolve6: withCallback(promises.resolve6, one),
  getServers: () => [],
  setServers: () => {},
  ...order,
  ...codes,
  ADDRCONFIG: 32,
  ALL: 16,
  V4MAPPED: 8,
  promises: { ...refusals("dns.promises"), ...order, ...codes, ...promises },
};
