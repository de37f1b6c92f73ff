"""Logins, trust, and what a user has switched off."""

import json
import re
import signal
import subprocess
import threading
import urllib.parse
import urllib.request

from bench import Failed, row
from server import calling

CLUB = """
pi.registerProvider("club", {
  baseUrl: "%s/v1", api: "openai-completions",
  models: [{ id: "member", name: "member", reasoning: false, input: ["text"], contextWindow: 100000, maxTokens: 1000, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } }],
  oauth: {
    name: "Club", login: async () => ({}), getApiKey: (kept) => kept.access,
    refreshToken: async (kept) => {
      const answer = await fetch("%s/token", { method: "POST", body: kept.refresh });
      return await answer.json();
    },
  },
});
"""
EXPIRED = {"type": "oauth", "access": "oldA", "refresh": "oldR", "expires": 1}


class Renewal:
    """A login that has expired, and a server that renews it when it may."""

    def __init__(self, bench, auth=None):
        self.reached, self.go = threading.Event(), threading.Event()
        self.auth = auth or bench.agent / "auth.json"
        bench.put(self.auth, json.dumps({"club": EXPIRED}))
        bench.server.routes["/token"] = self.renew
        if not bench.extensions:
            bench.extension(CLUB % (bench.server.url, bench.server.url))
        bench.start(model="club/member")
        bench.program.send("prompt", message="hello")
        if not self.reached.wait(60):
            raise Failed("no renewal")

    def renew(self, _):
        self.reached.set()
        self.go.wait(60)
        return 200, {"content-type": "application/json"}, json.dumps({"access": "newA", "refresh": "newR", "expires": 9999999999999})

    def stored(self):
        return json.loads(self.auth.read_text())["club"]["refresh"]


def end(bench, how):
    """Ends the program, and gives one that does not wait for a renewal the time to be gone."""
    process = bench.program.process
    if how == "closed input":
        process.stdin.close()
    else:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(3)
    except subprocess.TimeoutExpired:
        pass


@row("D-1a", "a renewal under way is finished and stored", "no_login_is_lost_wherever_its_renewal_is_disturbed", want={"abort": "newR", "closed input": "newR", "SIGTERM": "newR"})
def _(bench):
    seen = {}
    for how in ("abort", "closed input", "SIGTERM"):
        renewal = Renewal(bench)
        if how == "abort":
            bench.program.send("abort")
            bench.ask("get_state")
            renewal.go.set()
            bench.settled(0)
        else:
            end(bench, how)
            renewal.go.set()
        bench.end()
        seen[how] = renewal.stored()
    return seen


@row("D-1b", "also that of a sign-in to an MCP server", "no_login_is_lost_wherever_its_renewal_is_disturbed", want={"closed input": "new", "SIGTERM": "new"})
def _(bench):
    guarded = Guarded(bench)
    guarded.login()
    seen = {}
    for how in ("closed input", "SIGTERM"):
        guarded.expire()
        bench.start()
        bench.program.send("prompt", message="hello")
        if not guarded.reached.wait(60):
            raise Failed("no renewal")
        end(bench, how)
        guarded.go.set()
        bench.end()
        seen[how] = guarded.stored()["refresh_token"]
    return seen


@row("D-2", "the lock of a linked file is beside the real one", "the_lock_of_a_link_is_that_of_its_file", want=["real/auth.json.lock"])
def _(bench):
    real = bench.agent / "real" / "auth.json"
    bench.put(real, "{}")
    (bench.agent / "auth.json").symlink_to(real)
    renewal = Renewal(bench, real)
    locks = sorted(str(path.relative_to(bench.agent)) for path in bench.agent.glob("**/auth.json.lock"))
    renewal.go.set()
    bench.settled(0)
    return locks


def told(bench, message):
    """What a command of an extension says."""
    return [frame["message"] for frame in bench.command_run(message) if frame.get("method") == "notify"]


@row("D-3", "a saved no to a project counts where nothing needs trust", "a_remembered_no_counts_where_nothing_needs_trust", want=["false"])
def _(bench):
    bench.extension('pi.registerCommand("trusted", { handler: async (args, ctx) => ctx.ui.notify(String(ctx.isProjectTrusted())) });')
    bench.put("AGENTS.md", "Be brief.")
    bench.put(bench.agent / "trust.json", json.dumps({str(bench.work.resolve()): False}))
    bench.start()
    return told(bench, "/trusted")


@row("D-4", "`pi.exec` says why a program cannot be started", "programs_are_run_without_a_shell_and_never_reject", want=["spawn /no/such/bin ENOENT"])
def _(bench):
    bench.extension('pi.registerCommand("run", { handler: async (args, ctx) => ctx.ui.notify((await pi.exec("/no/such/bin", [])).stderr) });')
    bench.start()
    return told(bench, "/run")


@row("D-5", "`--models` takes every provider of an id, and warns", "a_pattern_without_a_provider_takes_every_provider_of_its_model", want=[["one", "two"], True])
def _(bench):
    for name in ("one", "two"):
        bench.providers[name] = bench.provider("completions", id="zeta")
    bench.start("--models", "zeta", model=None)
    seen = {bench.ask("get_state")["model"]["provider"]}
    for _ in range(3):
        changed = bench.ask("cycle_model")
        seen |= {changed["model"]["provider"]} if changed else set()
    return [sorted(seen), "zeta" in "".join(bench.program.complaints)]


PAGE = re.compile(r"http://\S+/authorize\?\S+")


class Guarded:
    """An MCP server that wants a sign-in, its authorization server, and a browser that says yes."""

    def __init__(self, bench):
        self.bench, self.url = bench, bench.server.url
        self.registered, self.authorized = [], []
        # A renewal has come, and may be answered.
        self.reached, self.go = threading.Event(), threading.Event()
        for path, route in {
            "/mcp": self.mcp,
            "/.well-known/oauth-protected-resource/mcp": self.resource,
            "/.well-known/oauth-protected-resource": self.resource,
            "/.well-known/oauth-authorization-server": self.metadata,
            "/.well-known/openid-configuration": self.metadata,
            "/register": self.register,
            "/authorize": self.authorize,
            "/access": self.access,
        }.items():
            bench.server.routes[path] = route
        # The page is opened here, whatever the program would open it with.
        browser = bench.root / "bin" / "xdg-open"
        bench.put(browser, "#!/bin/sh\n")
        browser.chmod(0o755)
        bench.env["PATH"] = f"{browser.parent}:{bench.env['PATH']}"
        entry = {"url": self.url + "/mcp", "exposure": "direct"}
        bench.put(bench.agent / "mcp.json", json.dumps({"mcpServers": {"peer": entry}}))

    def login(self):
        process = subprocess.Popen([*self.bench.command, "mcp", "login", "peer"], cwd=self.bench.work, env=self.bench.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said = ""
        for line in process.stdout:
            said += line
            page = PAGE.search(line)
            if page:
                urllib.request.urlopen(page[0], timeout=30).close()
        if process.wait():
            raise Failed(f"login: {said[-900:]}")

    def login_again(self):
        """Signs in during a session: pi has a command for it and remembers no longer than that, pith its program."""
        if not any(command["name"] == "mcp" for command in self.bench.ask("get_commands")["commands"]):
            return self.login()
        self.bench.program.send("prompt", message="/mcp login peer")
        told = self.bench.program.wait(lambda frame: "/authorize?" in frame.get("message", ""))
        if told is None:
            raise Failed("no address to sign in at")
        urllib.request.urlopen(PAGE.search(told["message"])[0], timeout=30).close()

    def stored(self):
        kept = json.loads((self.bench.agent / "mcp-auth.json").read_text())
        return kept[f"mcp__peer|{self.url}/mcp"]["tokens"]

    def expire(self):
        """Leaves a sign-in whose token has to be renewed."""
        path = self.bench.agent / "mcp-auth.json"
        kept = json.loads(path.read_text())
        kept[f"mcp__peer|{self.url}/mcp"] |= {"tokensExpireAt": 1, "tokens": {"access_token": "old", "refresh_token": "old", "token_type": "Bearer", "expires_in": 1}}
        path.write_text(json.dumps(kept))
        self.reached.clear()
        self.go.clear()

    @staticmethod
    def json(value, status=200, **headers):
        return status, {"content-type": "application/json"} | headers, json.dumps(value)

    def resource(self, _):
        return self.json({"resource": self.url + "/mcp", "authorization_servers": [self.url]})

    def metadata(self, _):
        ends = {name: self.url + path for name, path in (("authorization_endpoint", "/authorize"), ("token_endpoint", "/access"), ("registration_endpoint", "/register"))}
        return self.json({"issuer": self.url, **ends, "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": ["none"]})

    def register(self, request):
        asked = json.loads(request["text"])
        self.registered.append(asked)
        return self.json({**asked, "client_id": "client"}, 201)

    def authorize(self, request):
        asked = dict(urllib.parse.parse_qsl(request["path"].partition("?")[2]))
        self.authorized.append(asked)
        back = urllib.parse.urlencode({"code": "c", "state": asked["state"], "iss": self.url})
        return 302, {"location": f"{asked['redirect_uri']}?{back}"}, ""

    def access(self, request):
        if "grant_type=refresh_token" in request["text"]:
            self.reached.set()
            self.go.wait(60)
            return self.json({"access_token": "token", "refresh_token": "new", "token_type": "Bearer", "expires_in": 3600})
        return self.json({"access_token": "token", "refresh_token": "refresh", "token_type": "Bearer", "expires_in": 3600, "scope": self.authorized[-1].get("scope", "")})

    def mcp(self, request):
        metadata = f'resource_metadata="{self.url}/.well-known/oauth-protected-resource/mcp"'
        if request["headers"].get("authorization") != "Bearer token":
            return self.json({}, 401, **{"www-authenticate": f'Bearer {metadata}, scope="one"'})
        if request["method"] != "POST":
            return self.json({}, 405)
        message = json.loads(request["text"])
        match message["method"]:
            case "initialize":
                result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "peer", "version": "1"}}
            case "tools/list":
                result = {"tools": [{"name": "do", "description": "Does it.", "inputSchema": {"type": "object"}}]}
            case "tools/call":
                return self.json({}, 403, **{"www-authenticate": f'Bearer error="insufficient_scope", scope="two", {metadata}'})
            case _ if "id" not in message:
                return 202, {}, ""
            case _:
                return self.json({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "unknown"}})
        return self.json({"jsonrpc": "2.0", "id": message["id"], "result": result})


@row("D-6", "a sign-in to an MCP server registers a native application", "a_new_sign_in_asks_for_what_the_last_one_lacked", want=["native"])
def _(bench):
    guarded = Guarded(bench)
    guarded.login()
    return [asked.get("application_type") for asked in guarded.registered]


@row("D-7", "after `insufficient_scope` a sign-in asks for what was missing and granted", "a_new_sign_in_asks_for_what_the_last_one_lacked", want=[["one"], ["one", "two"]])
def _(bench):
    guarded = Guarded(bench)
    guarded.login()
    bench.start()
    bench.answers(calling("mcp__peer__do", {}))
    bench.prompt()
    guarded.login_again()
    return [sorted(asked.get("scope", "").split()) for asked in guarded.authorized]


def tools(bench):
    """The tools that the next request declares."""
    bench.prompt()
    return [tool["function"]["name"] for tool in bench.body().get("tools", [])]


@row("D-9", "`defaultTools` with signs changes the selection, the user's first", "every_way_to_name_tools", want=[["read", "bash", "edit", "grep"], ["read", "edit", "grep", "ls"]])
def _(bench):
    bench.settings["defaultTools"] = ["+grep", "-write"]
    bench.start()
    seen = [tools(bench)]
    bench.put(".pi/settings.json", json.dumps({"defaultTools": ["-bash", "+ls"]}))
    bench.put(bench.agent / "trust.json", json.dumps({str(bench.work.resolve()): True}))
    bench.start()
    return [*seen, tools(bench)]


PEER = [{"name": "do", "description": "Does it.", "inputSchema": {"type": "object"}}]


@row("D-10", "`--tools read` leaves no tool of an MCP server", "tools_of_servers_are_used_only_if_the_flag_names_them", want=[["read"], [[True, False]], ["read", "mcp__peer__do"]])
def _(bench):
    bench.mcp(PEER)
    bench.start("--tools", "read")
    bench.answers(calling("mcp__peer__do", {"x": 1}))
    seen = tools(bench)
    results = [[is_error, '"x"' in words] for is_error, words in bench.results()]
    bench.start("--tools", "read,mcp__peer__do")
    return [seen, results, tools(bench)]


def has_server(bench, *arguments):
    """Whether the tool of the MCP server is there."""
    bench.start(*arguments)
    return "mcp__peer__do" in tools(bench)


@row("D-11", "`--no-extensions` switches MCP off, `-e builtin:mcp` on again", "servers_that_are_switched_off_do_not_start", want=[True, False, True])
def _(bench):
    bench.mcp(PEER)
    return [has_server(bench), has_server(bench, "--no-extensions"), has_server(bench, "--no-extensions", "-e", "builtin:mcp")]


@row("D-12", "`-builtin:mcp` in the settings switches MCP off", "what_is_built_in_is_switched_by_settings", want=[False, True, False])
def _(bench):
    bench.mcp(PEER)
    bench.put(bench.agent / "trust.json", json.dumps({str(bench.work.resolve()): True}))
    bench.settings["extensions"] = ["-builtin:mcp"]
    seen = [has_server(bench)]
    bench.settings["extensions"] = ["-builtin:codemode", "-builtin:tool-search"]
    seen.append(has_server(bench))
    bench.put(".pi/settings.json", json.dumps({"extensions": ["-builtin:mcp"]}))
    return [*seen, has_server(bench)]
