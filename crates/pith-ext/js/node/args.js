// util.parseArgs.

exports.parseArgs = ({ args = process.argv.slice(2), options = {}, strict = true, allowPositionals = !strict, tokens: wantsTokens } = {}) => {
  const values = Object.create(null);
  const positionals = [];
  const fail = (message, code) => {
    throw Object.assign(new TypeError(message), { code });
  };
  const store = (name, value) => {
    if (options[name]?.multiple) (values[name] ??= []).push(value);
    else values[name] = value;
  };
  const rest = [...args];
  const option = (name, shown, inline) => {
    const known = options[name];
    if (!known && strict) fail(`Unknown option '${shown}'`, "ERR_PARSE_ARGS_UNKNOWN_OPTION");
    if (known?.type === "string") {
      const value = inline ?? rest.shift();
      if (value === undefined && strict) fail(`Option '${shown} <value>' argument missing`, "ERR_PARSE_ARGS_INVALID_OPTION_VALUE");
      store(name, value);
    } else store(name, inline ?? true);
  };
  while (rest.length) {
    const arg = rest.shift();
    if (arg === "--") positionals.push(...rest.splice(0));
    else if (arg.startsWith("--")) {
      const at = arg.indexOf("=");
      option(at < 0 ? arg.slice(2) : arg.slice(2, at), arg, at < 0 ? undefined : arg.slice(at + 1));
    } else if (/^-[^-]/.test(arg)) {
      for (const short of arg.slice(1)) option(Object.keys(options).find((name) => options[name].short === short) ?? short, `-${short}`);
    } else {
      if (!allowPositionals) fail(`Unexpected argument '${arg}'`, "ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL");
      positionals.push(arg);
    }
  }
  for (const [name, { default: fallback }] of Object.entries(options)) if (fallback !== undefined) values[name] ??= fallback;
  return wantsTokens ? { values, positionals, tokens: [] } : { values, positionals };
};
