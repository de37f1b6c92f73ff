// `RpcClient`: another pith, driven over its protocol.

const COMMANDS = {
  prompt: (message, images) => ({ type: "prompt", message, images }),
  steer: (message, images) => ({ type: "steer", message, images }),
  followUp: (message, images) => ({ type: "follow_up", message, images }),
  abort: () => ({ type: "abort" }),
  newSession: (parentSession) => ({ type: "new_session", parentSession }),
  getState: () => ({ type: "get_state" }),
  setModel: (provider, modelId) => ({ type: "set_model", provider, modelId }),
  cycleModel: () => ({ type: "cycle_model" }),
  setThinkingLevel: (level) => ({ type: "set_thinking_level", level }),
  cycleThinkingLevel: () => ({ type: "cycle_thinking_level" }),
  setSteeringMode: (mode) => ({ type: "set_steering_mode", mode }),
  setFollowUpMode: (mode) => ({ type: "set_follow_up_mode", mode }),
  compact: (customInstructions) => ({ type: "compact", customInstructions }),
  setAutoCompaction: (enabled) => ({ type: "set_auto_compaction", enabled }),
  setAutoRetry: (enabled) => ({ type: "set_auto_retry", enabled }),
  abortRetry: () => ({ type: "abort_retry" }),
  bash: (command) => ({ type: "bash", command }),
  abortBash: () => ({ type: "abort_bash" }),
  getSessionStats: () => ({ type: "get_session_stats" }),
  exportHtml: (outputPath) => ({ type: "export_html", outputPath }),
  switchSession: (sessionPath) => ({ type: "switch_session", sessionPath }),
  fork: (entryId) => ({ type: "fork", entryId }),
  clone: () => ({ type: "clone" }),
  setSessionName: (name) => ({ type: "set_session_name", name }),
};

// Commands whose answer is one member of the data.
const ASKS = {
  getAvailableModels: ["get_available_models", "models"],
  getForkMessages: ["get_fork_messages", "messages"],
  getLastAssistantText: ["get_last_assistant_text", "text"],
  getMessages: ["get_messages", "messages"],
  getCommands: ["get_commands", "commands"],
};

class RpcClient {
  #options;
  #child = null;
  #waiting = new Map();
  #listeners = new Set();
  #stderr = "";
  #last = 0;

  constructor(options = {}) {
    this.#options = options;
  }

  async start() {
    if (this.#child) throw new Error("Client already started");
    const { cliPath, cwd, env, provider, model, args = [] } = this.#options;
    const program = cliPath && !/\.(?:c|m)?js$/.test(cliPath) ? cliPath : process.execPath;
    const flags = ["--mode", "rpc", ...(provider ? ["--provider", provider] : []), ...(model ? ["--model", model] : []), ...args];
    const child = require("child_process").spawn(program, flags, { cwd, env: { ...process.env, ...env }, stdio: ["pipe", "pipe", "pipe"] });
    this.#child = child;
    child.stderr.on("data", (data) => (this.#stderr += data));
    const lines = require("readline").createInterface({ input: child.stdout });
    lines.on("line", (line) => this.#take(line));
    const end = (why) => {
      for (const { reject } of this.#waiting.values()) reject(new Error(`${why}. Stderr: ${this.#stderr}`));
      this.#waiting.clear();
      this.#child = null;
    };
    child.on("error", (error) => end(error.message));
    child.on("exit", (code) => end(`The agent process exited with code ${code}`));
    // Answered as soon as it serves.
    await this.getState();
  }

  #take(line) {
    let frame;
    try {
      frame = JSON.parse(line);
    } catch {
      return;
    }
    const waiting = frame.type === "response" ? this.#waiting.get(frame.id) : null;
    if (!waiting) {
      for (const listener of [...this.#listeners]) listener(frame);
      return;
    }
    this.#waiting.delete(frame.id);
    if (frame.success) waiting.resolve(frame.data);
    else waiting.reject(new Error(frame.error));
  }

  send(command) {
    if (!this.#child) return Promise.reject(new Error("Client not started"));
    const id = `req_${++this.#last}`;
    const answer = new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    this.#child.stdin.write(`${JSON.stringify({ ...command, id })}\n`);
    return answer;
  }

  async stop() {
    const child = this.#child;
    if (!child) return;
    const ended = new Promise((resolve) => child.on("exit", resolve));
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), 1000);
    await ended;
    clearTimeout(timer);
  }

  onEvent(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
  getStderr() {
    return this.#stderr;
  }

  // Resolves with the events up to the end of the run.
  collectEvents(timeout = 60000) {
    return new Promise((resolve, reject) => {
      const events = [];
      const stop = this.onEvent((event) => {
        events.push(event);
        if (event.type !== "agent_end") return;
        stop();
        clearTimeout(timer);
        resolve(events);
      });
      const timer = setTimeout(() => {
        stop();
        reject(new Error(`Timeout collecting events. Stderr: ${this.#stderr}`));
      }, timeout);
    });
  }
  async waitForIdle(timeout) {
    await this.collectEvents(timeout);
  }
  async promptAndWait(message, images, timeout) {
    const events = this.collectEvents(timeout);
    await this.prompt(message, images);
    return events;
  }
}

for (const [name, make] of Object.entries(COMMANDS)) {
  RpcClient.prototype[name] = function (...given) {
    return this.send(make(...given));
  };
}
for (const [name, [type, member]] of Object.entries(ASKS)) {
  RpcClient.prototype[name] = async function () {
    return (await this.send({ type }))?.[member];
  };
}

module.exports = { RpcClient };
