// The state of the JavaScript side: the loaded extensions and their phase.

exports.config = {}; // cwd, mode, hasUI, agentDir, color, execPath, version
exports.limits = { handlerMs: 30000, observerMs: 1000, factoryMs: 30000 };

// A generation is one instantiation of all extensions; a reload or a new session makes the next.
class Generation {
  constructor(number) {
    this.number = number;
    this.phase = "loading"; // loading | bound | stale
    this.extensions = [];
    this.bus = new Map(); // channel -> Set of { fn, ext }
    this.flagValues = new Map();
    this.parts = {}; // what contexts of all extensions show: the session, the models
  }
}

exports.generation = new Generation(0);

exports.nextGeneration = () => {
  exports.generation.phase = "stale";
  exports.generation.bus.clear();
  exports.generation = new Generation(exports.generation.number + 1);
  return exports.generation;
};

exports.extensions = () => exports.generation.extensions;

exports.promptOverride = null; // while `before_agent_start` runs: the prompt as edited so far

// Objects with functions that the agent refers to by number, such as the shell operations of `user_bash`.
const kept = new Map();
let last = 0;
exports.keep = (object) => {
  kept.set(++last, object);
  return last;
};
exports.take = (number) => kept.get(number);
exports.drop = (number) => kept.delete(number);

exports.dropProviders = null; // set by internal/providers
exports.contextFor = null; // set by internal/context
exports.trustContext = null;
