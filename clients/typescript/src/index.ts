/**
 * Drives pith, a headless coding agent, over JSON lines.
 *
 * ```ts
 * await using pith = Pith.spawn({ arguments: ["--model", "scripted/tour"] });
 * for await (const event of pith.run("hello")) console.log(event.type);
 * ```
 */

import { spawn, type ChildProcessByStdio } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import type {
  Block, Command, Event, FailedResponse, HostToolFrame, PermissionFrame, PermissionResponse, Response, UiRequest,
} from "./protocol.js";

export type * from "./protocol.js";

/** Names of commands. */
export type CommandName = Command["type"];
/** What a command takes beside its name. */
export type Fields<K extends CommandName> = Omit<Extract<Command, { type: K }>, "id" | "type">;
/** What a command answers. */
export type Data<K extends CommandName> =
  Extract<Response, { command: K; success: true }> extends { data: infer D } ? D : undefined;
/** Everything that answers no command. */
export type Told = Event | UiRequest | HostToolFrame | PermissionFrame;

type HostToolCall = Extract<HostToolFrame, { type: "host_tool_call" }>;
type PermissionRequest = Extract<PermissionFrame, { type: "permission_request" }>;
type PermissionAnswer = PermissionResponse["optionId"] | Pick<PermissionResponse, "optionId" | "message">;
type Dialog = UiRequest & { method: "select" | "confirm" | "input" | "editor" };

/** A function of this program that the model can call. What it throws is a failed call. */
export interface HostTool {
  name: string;
  description: string;
  /** A JSON Schema. */
  parameters: Record<string, unknown>;
  label?: string;
  call(input: Record<string, unknown>, context: ToolContext): Promise<string | Block[]> | string | Block[];
}

/** What a host tool can do and see while it runs. */
export interface ToolContext {
  /** Aborted when the call is withdrawn; its result is then ignored. */
  signal: AbortSignal;
  /** Reports progress: the whole result so far. */
  update(result: string | Block[]): void;
}

export interface Options {
  /** The program and arguments that come before all others; `pith` by default. */
  program?: string | string[];
  /** Further arguments. */
  arguments?: string[];
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  /** Answers extensions that ask the person: a text, a truth value for `confirm`, `undefined` to cancel. */
  dialog?(request: Dialog): Promise<string | boolean | undefined> | string | boolean | undefined;
  /**
   * Answers whether a tool call may run: one of the ids in `options`, with a `message` for the model if it is a no.
   * What it throws is a no. Without it such questions come as dialogs.
   */
  permission?(request: PermissionRequest): Promise<PermissionAnswer> | PermissionAnswer;
  tools?: HostTool[];
}

/** A command that was answered with `success: false`. */
export class CommandFailed extends Error {
  readonly command: string;
  /** Stable name of the kind of failure. */
  readonly code: string | undefined;

  constructor(response: FailedResponse) {
    super(response.error);
    this.name = "CommandFailed";
    this.command = response.command;
    this.code = response.code;
  }
}

/** pith has ended; commands that were not answered fail with this. */
export class PithExited extends Error {
  constructor(
    readonly status: number | null,
    readonly signal: string | null,
    readonly stderr: string,
  ) {
    const last = stderr.trim().split("\n").at(-1) || "nothing on stderr";
    super(`pith has ended with ${signal ?? `status ${status}`}: ${last}`);
    this.name = "PithExited";
  }
}

/** How many bytes of stderr are kept to explain an unexpected end. */
const STDERR_KEPT = 64 * 1024;

interface Waiting {
  resolve(data: unknown): void;
  reject(error: Error): void;
}

/** One pith process. */
export class Pith {
  readonly #process: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #options: Options;
  readonly #waiting = new Map<string, Waiting>();
  readonly #calls = new Map<string, AbortController>();
  readonly #listeners = new Set<Events>();
  readonly #exited: Promise<number | null>;
  /** The commands that tell pith what this host can do; until they are accepted no other is sent. */
  readonly #ready: Promise<unknown>;
  #ended: PithExited | undefined;
  #stderr = "";
  #count = 0;

  /** Starts `pith --mode rpc`. Commands may be sent at once. */
  static spawn(options: Options = {}): Pith {
    return new Pith(options);
  }

  private constructor(options: Options) {
    this.#options = options;
    const [program = "pith", ...first] = [options.program ?? "pith"].flat();
    const given = [...first, "--mode", "rpc", ...(options.arguments ?? [])];
    this.#process = spawn(program, given, { cwd: options.cwd, env: options.env, stdio: ["pipe", "pipe", "pipe"] });
    this.#process.stdin.on("error", () => {}); // The end of the process says why.
    this.#process.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-STDERR_KEPT);
    });
    this.#exited = new Promise((resolve) => {
      this.#process.on("error", (error) => {
        this.#stderr += error.message;
        this.#end(null, null);
        resolve(null);
      });
      this.#process.on("close", (status, signal) => {
        this.#end(status, signal);
        resolve(status);
      });
    });
    this.#read();
    const introduced: Promise<unknown>[] = [];
    if (options.permission) introduced.push(this.#submit("hello", { accept: { permissionRequest: true } }));
    const tools = options.tools ?? [];
    if (tools.length > 0) {
      const definitions = tools.map(({ name, description, parameters, label }) => ({ name, description, parameters, label }));
      introduced.push(this.#submit("set_host_tools", { tools: definitions }));
    }
    this.#ready = Promise.all(introduced);
    this.#ready.catch(() => {}); // Whoever sends a command hears of it.
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** Sends a command, waits for its response and returns the data. Rejects if the tools of the options were refused. */
  async ask<K extends CommandName>(
    type: K,
    ...[fields]: {} extends Fields<K> ? [Fields<K>?] : [Fields<K>]
  ): Promise<Data<K>> {
    await this.#ready;
    return (await this.#submit(type, fields ?? {})) as Data<K>;
  }

  #submit(type: CommandName, fields: object): Promise<unknown> {
    if (this.#ended) return Promise.reject(this.#ended);
    const id = `ts-${++this.#count}`;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#send({ id, type, ...fields });
    });
  }

  /** Starts a run, or joins one as `streamingBehavior` says. */
  prompt(message: string, fields: Omit<Fields<"prompt">, "message"> = {}): Promise<Data<"prompt">> {
    return this.ask("prompt", { message, ...fields });
  }

  /** Gives the model something to consider before its next answer. */
  steer(message: string): Promise<Data<"steer">> {
    return this.ask("steer", { message });
  }

  /** Stops the run; resolves when it has stopped. */
  abort(): Promise<Data<"abort">> {
    return this.ask("abort");
  }

  /**
   * Sends a prompt and yields its events up to `agent_settled`. Yields nothing for a text that an extension has dealt
   * with itself (disposition `handled`).
   */
  async *run(message: string, fields: Omit<Fields<"prompt">, "message"> = {}): AsyncGenerator<Told> {
    const events = this.listen();
    try {
      if ((await this.prompt(message, fields)).disposition === "handled") return;
      for await (const event of events) {
        yield event;
        if (event.type === "agent_settled") return;
      }
    } finally {
      events.stop();
    }
    throw this.#ended ?? new PithExited(null, null, "");
  }

  /** Everything pith says from now on that answers no command, until it ends or the caller stops listening. */
  listen(): Events {
    const events = new Events((stopped) => this.#listeners.delete(stopped));
    if (this.#ended) events.end(this.#ended);
    else this.#listeners.add(events);
    return events;
  }

  /**
   * Ends pith: closes its stdin and waits; after `grace` milliseconds asks it to end, then kills it. What pith has
   * started ends with it in every case. Resolves with its exit status.
   */
  async close(grace = 10_000): Promise<number | null> {
    this.#process.stdin.end();
    const steps = [() => this.#process.kill("SIGTERM"), () => this.#process.kill("SIGKILL")];
    let timer: NodeJS.Timeout | undefined;
    const next = (wait: number) => {
      const step = steps.shift();
      if (step) timer = setTimeout(() => (step(), next(2000)), wait);
    };
    next(grace);
    const status = await this.#exited;
    clearTimeout(timer);
    return status;
  }

  async [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")](): Promise<void> {
    await this.close();
  }

  #send(frame: unknown): void {
    this.#process.stdin.write(`${JSON.stringify(frame)}\n`);
  }

  #read(): void {
    const parts: Buffer[] = [];
    this.#process.stdout.on("data", (data: Buffer) => {
      let start = 0;
      for (let end = data.indexOf(10); end >= 0; end = data.indexOf(10, start)) {
        parts.push(data.subarray(start, end));
        start = end + 1;
        const line = Buffer.concat(parts.splice(0)).toString("utf8").trim();
        if (line) this.#line(line);
      }
      if (start < data.length) parts.push(data.subarray(start));
    });
  }

  #line(line: string): void {
    let frame: any;
    try {
      frame = JSON.parse(line);
    } catch {
      return; // Not ours to judge; every command still gets its answer.
    }
    if (frame?.type === "response") return this.#response(frame);
    if (frame?.type === "host_tool_call") void this.#call(frame);
    else if (frame?.type === "host_tool_cancel") this.#calls.get(frame.targetId)?.abort();
    else if (frame?.type === "permission_request") void this.#permit(frame);
    else if (frame?.type === "extension_ui_request" && DIALOGS.has(frame.method)) void this.#ask(frame);
    for (const listener of this.#listeners) listener.push(frame);
  }

  #response(response: Response): void {
    const waiting = this.#waiting.get(String(response.id));
    if (!waiting) return;
    this.#waiting.delete(String(response.id));
    if (response.success) waiting.resolve("data" in response ? response.data : undefined);
    else waiting.reject(new CommandFailed(response));
  }

  async #ask(request: Dialog & { id: string }): Promise<void> {
    const type = "extension_ui_response";
    let answer: string | boolean | undefined;
    try {
      answer = await this.#options.dialog?.(request);
    } finally {
      if (answer === undefined) this.#send({ type, id: request.id, cancelled: true });
      else if (request.method === "confirm") this.#send({ type, id: request.id, confirmed: Boolean(answer) });
      else this.#send({ type, id: request.id, value: String(answer) });
    }
  }

  async #permit(request: PermissionRequest): Promise<void> {
    let answer: PermissionAnswer = "deny";
    try {
      answer = (await this.#options.permission?.(request)) ?? answer;
    } finally {
      const chosen = typeof answer === "string" ? { optionId: answer } : answer;
      this.#send({ type: "permission_response", id: request.id, ...chosen });
    }
  }

  async #call(call: HostToolCall): Promise<void> {
    const withdrawn = new AbortController();
    this.#calls.set(call.id, withdrawn);
    const { signal } = withdrawn;
    const update = (result: string | Block[]) => {
      if (!signal.aborted) this.#send({ type: "host_tool_update", id: call.id, partialResult: { content: content(result) } });
    };
    let answer: object;
    try {
      const tool = this.#options.tools?.find(({ name }) => name === call.toolName);
      if (!tool) throw new Error(`there is no host tool ${call.toolName}`);
      answer = { result: { content: content(await tool.call(call.arguments, { signal, update })) } };
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      answer = { isError: true, result: { content: content(text) } };
    }
    this.#calls.delete(call.id);
    if (!signal.aborted) this.#send({ type: "host_tool_result", id: call.id, ...answer });
  }

  #end(status: number | null, signal: string | null): void {
    if (this.#ended) return;
    this.#ended = new PithExited(status, signal, this.#stderr);
    for (const waiting of this.#waiting.values()) waiting.reject(this.#ended);
    this.#waiting.clear();
    for (const listener of this.#listeners) listener.end(this.#ended);
    this.#listeners.clear();
  }
}

const DIALOGS = new Set(["select", "confirm", "input", "editor"]);

function content(result: string | Block[]): unknown[] {
  return typeof result === "string" ? [{ type: "text", text: result }] : result;
}

/** A subscription. It misses nothing from the moment it exists. */
export class Events implements AsyncIterableIterator<Told> {
  readonly #queue: Told[] = [];
  readonly #stop: (events: Events) => void;
  #wake: (() => void) | undefined;
  #ended: PithExited | undefined;
  #stopped = false;

  /** @internal */
  constructor(stop: (events: Events) => void) {
    this.#stop = stop;
  }

  /** @internal */
  push(event: Told): void {
    this.#queue.push(event);
    this.#wake?.();
  }

  /** @internal */
  end(why: PithExited): void {
    this.#ended = why;
    this.#wake?.();
  }

  /** Ends the subscription. */
  stop(): void {
    this.#stopped = true;
    this.#stop(this);
    this.#wake?.();
  }

  async next(): Promise<IteratorResult<Told>> {
    while (this.#queue.length === 0 && !this.#ended && !this.#stopped) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    const value = this.#stopped ? undefined : this.#queue.shift();
    return value ? { value, done: false } : { value: undefined, done: true };
  }

  async return(): Promise<IteratorResult<Told>> {
    this.stop();
    return { value: undefined, done: true };
  }

  /** The next event of this type; rejects with {@link PithExited} at the end. */
  async wait<T extends Told["type"]>(type: T): Promise<Extract<Told, { type: T }>> {
    for (;;) {
      const { value, done } = await this.next();
      if (done) throw this.#ended ?? new Error(`no ${type}: not listening any more`);
      if (value.type === type) return value as Extract<Told, { type: T }>;
    }
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
