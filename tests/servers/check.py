#!/usr/bin/env python3
"""pith against real servers: llama.cpp, LiteLLM, nginx, mitmproxy.

Each check is one cell of the table that is written in the end. A server that cannot be had is no failure: its
checks are skipped, and the skips are counted.
"""

import argparse
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.error
import urllib.parse
import urllib.request

from pith import Pith

HERE = pathlib.Path(__file__).parent
CONTEXT = 8192  # tokens, which are bytes here
KEY = "sk-servers-123456"
START_LIMIT = 120  # seconds a server may take to start
APIS = {"completions": "openai-completions", "messages": "anthropic-messages", "responses": "openai-responses"}
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
TOOL = {
    "name": "pick",
    "description": "Picks a colour.",
    "parameters": {
        "type": "object",
        "properties": {"color": {"enum": ["red", "blue"]}},
        "required": ["color"],
        "additionalProperties": False,
    },
}
# Makes a model of random weights call a tool, once: it must, and the token that begins a call is likely.
CALLING = {"tool_choice": "required", "logit_bias": [["<tool_call>", 100]], "stop": ["</tool_call>"]}

CHECKS = []


class Skip(Exception):
    """Something that is needed cannot be had."""


def check(server, feature):
    def add(function):
        CHECKS.append((server, feature, function))
        return function

    return add


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def status(url, headers=None):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers or {}), timeout=5) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


class World:
    """The servers, each started when it is first needed."""

    def __init__(self, pith, cache):
        self.program, self.cache = pith, cache
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="pith-servers-"))
        self.running = contextlib.ExitStack()
        self.known = {}

    def start(self, name, command, is_up, **options):
        log = open(self.directory / f"{name}.log", "wb")
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, **options)
        self.running.callback(stop, process)
        deadline = time.monotonic() + START_LIMIT
        while not is_up():
            if process.poll() is not None or time.monotonic() > deadline:
                text = (self.directory / f"{name}.log").read_text(errors="replace")[-800:]
                raise AssertionError(f"{name} does not start: {text}")
            time.sleep(0.05)
        return process

    def once(self, name, make):
        """Makes a thing once; what went wrong then goes wrong again."""
        if name not in self.known:
            try:
                self.known[name] = (make(), None)
            except (Skip, AssertionError) as error:
                self.known[name] = (None, error)
        thing, error = self.known[name]
        if error:
            raise error
        return thing

    def tool(self, environment, name):
        program = self.cache / environment / "bin" / name
        if not program.exists():
            raise Skip(f"{environment} is not installed")
        return str(program)

    def llama_command(self, port):
        model = self.directory / "random.gguf"
        return [self.tool("llama", "python"), str(HERE / "llama.py"), str(model), str(CONTEXT), str(port)]

    def llama(self):
        def make():
            port = free_port()
            url = f"http://127.0.0.1:{port}"
            self.start("llama", self.llama_command(port), lambda: status(f"{url}/health") == 200)
            return url

        return self.once("llama", make)

    def litellm(self):
        def make():
            program, behind, port = self.tool("litellm", "litellm"), f"{self.llama()}/v1", free_port()
            models = [
                {"model_name": name, "litellm_params": {"model": model, "api_base": behind, "api_key": "none"}}
                for name, model in [("tiny", "openai/tiny"), ("four", "openai/gpt-4o")]
            ]
            config = self.directory / "litellm.json"  # JSON is YAML
            config.write_text(json.dumps({"model_list": models, "general_settings": {"master_key": KEY}}))
            url = f"http://127.0.0.1:{port}"
            command = [program, "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
            env = {**os.environ, "HOME": str(self.directory), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
            self.start("litellm", command, lambda: status(f"{url}/health/liveliness") == 200, env=env)
            return url

        return self.once("litellm", make)

    def authority(self):
        """A private authority and a certificate of it for localhost."""

        def make():
            def openssl(*arguments):
                subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=self.directory)

            try:
                openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=Private",
                        "-keyout", "ca.key", "-out", "ca.pem")  # fmt: skip
                openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", "server.key",
                        "-out", "server.csr")  # fmt: skip
                (self.directory / "names").write_text("subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n")
                openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                        "-days", "2", "-extfile", "names", "-out", "server.pem")  # fmt: skip
            except FileNotFoundError:
                raise Skip("openssl is not installed") from None
            return str(self.directory / "ca.pem")

        return self.once("authority", make)

    def nginx(self):
        def make():
            program = next((path for path in ["/usr/sbin/nginx", "/usr/bin/nginx"] if os.path.exists(path)), None)
            if not program:
                raise Skip("nginx is not installed")
            self.authority()
            plain, tls, place = free_port(), free_port(), self.directory
            crypted = subprocess.run(["openssl", "passwd", "-apr1", "secret"], check=True, capture_output=True, text=True)
            (place / "passwords").write_text(f"pith:{crypted.stdout}")
            behind = f"proxy_pass {self.llama()}; proxy_buffering off; proxy_http_version 1.1;"
            temporary = " ".join(
                f"{kind}_temp_path {place}/{kind};" for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            )
            # Workers of root are somebody else, who may not read here.
            user = "user root;" if os.geteuid() == 0 else ""
            (place / "nginx.conf").write_text(f"""
                {user} daemon off; pid {place}/nginx.pid; error_log {place}/nginx-errors.log; worker_processes 1;
                events {{ }}
                http {{
                    access_log off; {temporary} client_max_body_size 64m;
                    gzip on; gzip_proxied any; gzip_min_length 1; gzip_types *;
                    server {{
                        listen 127.0.0.1:{plain};
                        location / {{ {behind} }}
                        location ~ ^/old(/.*)$ {{ return 308 $1; }}
                        location /login/ {{ return 302 https://login.test/start; }}
                        location /private/ {{
                            auth_basic private; auth_basic_user_file {place}/passwords;
                            rewrite ^/private(/.*)$ $1 break; {behind}
                        }}
                    }}
                    server {{
                        listen 127.0.0.1:{tls} ssl http2;
                        ssl_certificate {place}/server.pem; ssl_certificate_key {place}/server.key;
                        location / {{ {behind} }}
                    }}
                }}
            """)
            url = f"http://127.0.0.1:{plain}"
            command = [program, "-c", str(place / "nginx.conf"), "-e", str(place / "nginx-errors.log")]
            self.start("nginx", command, lambda: status(f"{url}/health") == 200)
            return {"plain": url, "tls": f"https://localhost:{tls}"}

        return self.once("nginx", make)

    def mitmproxy(self):
        def make():
            program, place = self.tool("mitm", "mitmdump"), self.directory / "mitm"
            http, socks = free_port(), free_port()
            command = [program, "--mode", f"regular@127.0.0.1:{http}", "--mode", f"socks5@127.0.0.1:{socks}"]
            command += ["--set", f"confdir={place}", "--proxyauth", "pith:secret", "--ssl-insecure", "--quiet"]

            def is_up():
                return (place / "mitmproxy-ca-cert.pem").exists() and is_open(http) and is_open(socks)

            self.start("mitmproxy", command, is_up, env={**os.environ, "HOME": str(self.directory)})
            return {"http": http, "socks": socks, "authority": str(place / "mitmproxy-ca-cert.pem")}

        return self.once("mitmproxy", make)

    def pith(self, base_url, api="completions", model="tiny", entry=None, provider=None, **options):
        """pith with a model at this address."""
        entry = {"maxTokens": 64, "contextWindow": CONTEXT, **(entry or {}), "id": model}
        settings = {"baseUrl": base_url, "api": APIS[api], "apiKey": KEY, "models": [entry], **(provider or {})}
        return Pith(self.program, settings, **options)


def is_open(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def stop(process):
    process.terminate()
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def base(url, api):
    return url if api == "messages" else f"{url}/v1"


def said_something(pith, answer):
    assert answer.get("stopReason") in ("stop", "length"), f"{answer.get('errorMessage')}; {pith.story()}"
    assert any(block.get("text") for block in answer["content"]), answer


def failed_at_once(pith, answer, kind, *texts):
    assert answer.get("stopReason") == "error", answer
    error, text = answer["error"], answer["errorMessage"]
    assert error["kind"] == kind, f"{error}: {text}"
    assert not pith.seen("auto_retry_start"), f"asked again: {text}"
    for part in texts:
        assert part in text, text


def text_over_all_apis(world, url):
    for api in APIS:
        with world.pith(base(url, api), api) as pith:
            said_something(pith, pith.ask("hi"))
    return ", ".join(APIS)


def calls_a_tool(world, base_url):
    with world.pith(base_url, entry={"maxTokens": 2000, "samplingParams": CALLING}) as pith:
        pith.send("set_host_tools", tools=[TOOL])
        pith.send("prompt", message="pick one")
        # The second turn shows that the server took call and result. It calls again, and enough is enough.
        while len(pith.seen("turn_start")) < 2:
            frame = pith.wait(lambda frame: frame["type"] in ("host_tool_call", "turn_start", "agent_settled"))
            assert frame["type"] != "agent_settled", pith.answer().get("errorMessage")
            if frame["type"] == "host_tool_call":
                assert frame["toolName"] == "pick" and frame["arguments"]["color"] in ("red", "blue"), frame
                result = {"content": [{"type": "text", "text": "taken"}]}
                pith.send("host_tool_result", id=frame["id"], result=result)
        again = pith.wait(lambda frame: frame["type"] in ("host_tool_call", "agent_settled"))
        assert again["type"] == "host_tool_call", pith.answer().get("errorMessage")
        pith.send("abort")
        pith.wait_type("agent_settled")


def follows_recipe(world, name, url, env):
    """Does as docs/models.md says, but for the port."""
    docs = (HERE / "../../docs/models.md").read_text()
    recipe = json.loads(docs.split(f"### {name}\n")[1].split("```json\n")[1].split("```")[0])
    (provider,) = recipe["providers"].values()
    address = urllib.parse.urlsplit(provider["baseUrl"])
    provider["baseUrl"] = urllib.parse.urlsplit(url)._replace(path=address.path).geturl()
    with Pith(world.program, provider, env={**env, "PI_OFFLINE": "0"}) as pith:
        said_something(pith, pith.ask("hi"))
    return "docs/models.md"


# llama.cpp


@check("llama.cpp", "text")
def _(world):
    return text_over_all_apis(world, world.llama())


@check("llama.cpp", "minimal entry")
def _(world):
    provider = {"baseUrl": f"{world.llama()}/v1", "api": APIS["completions"], "models": [{"id": "tiny"}]}
    with Pith(world.program, provider) as pith:
        said_something(pith, pith.ask("hi"))
    return "only baseUrl, api and id"


@check("llama.cpp", "tool call")
def _(world):
    calls_a_tool(world, f"{world.llama()}/v1")
    return "by grammar; completions"


@check("llama.cpp", "abort")
def _(world):
    url = world.llama()
    entry = {"maxTokens": 7500, "samplingParams": {"ignore_eos": True}}

    def is_busy():
        with urllib.request.urlopen(f"{url}/slots", timeout=5) as answer:
            return json.load(answer)[0]["is_processing"]

    for _ in range(5):
        with world.pith(f"{url}/v1", entry=entry) as pith:
            pith.send("prompt", message="count")
            pith.wait(lambda frame: frame["type"] == "message_update")
            was_busy = is_busy()
            pith.send("abort")
            started = time.monotonic()
            while is_busy():
                assert time.monotonic() - started < 10, "the slot stays busy"
            freed = time.monotonic() - started
            pith.wait_type("agent_settled")
            if was_busy and pith.answer().get("stopReason") == "aborted":
                return f"slot free after {freed * 1000:.0f} ms"
    raise Skip("answers end before they can be aborted")


@check("llama.cpp", "503 while loading")
def _(world):
    # The server answers 503 for a moment. Whoever comes too late has seen nothing, and tries with a new server.
    for _ in range(5):
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        settings = {"retry": {"baseDelayMs": 50, "maxRetries": 8}}
        with world.pith(f"{url}/v1", settings=settings) as pith:
            pith.send("get_state")
            pith.wait(lambda frame: frame.get("command") == "get_state")
            process = subprocess.Popen(world.llama_command(port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                deadline = time.monotonic() + START_LIMIT
                while (now := status(f"{url}/health")) is None:
                    assert process.poll() is None and time.monotonic() < deadline, "the server does not start"
                if now != 503:
                    continue
                answer = pith.ask("hi")
                said_something(pith, answer)
                retries = pith.seen("auto_retry_start")
                if retries:
                    assert "503" in retries[0]["errorMessage"], retries[0]
                    return f"asked again {len(retries)} times"
            finally:
                stop(process)
    raise Skip("the server was never seen loading")


@check("llama.cpp", "overflow")
def _(world):
    with world.pith(f"{world.llama()}/v1", entry={"contextWindow": 128_000}) as pith:
        answer = pith.ask("x" * (CONTEXT + 1000))
        assert answer["error"]["kind"] == "overflow", answer
        assert pith.seen("compaction_start"), pith.story()
    return "known as one, compaction follows"


@check("llama.cpp", "picture refused")
def _(world):
    with world.pith(f"{world.llama()}/v1", entry={"input": ["text", "image"]}) as pith:
        picture = {"type": "image", "data": PICTURE, "mimeType": "image/png"}
        answer = pith.ask("look", images=[picture])
        said_something(pith, answer)
        assert answer["diagnostics"]["imagesOmitted"]["count"] == 1, answer
        said_something(pith, pith.ask("and now"))
    return "a note takes its place"


@check("llama.cpp", "wrong path")
def _(world):
    with world.pith(f"{world.llama()}/nowhere") as pith:
        failed_at_once(pith, pith.ask("hi"), "invalid_request", "/nowhere/chat/completions", "models.json")


@check("llama.cpp", "recipe")
def _(world):
    return follows_recipe(world, "llama.cpp", world.llama(), {})


# LiteLLM


@check("LiteLLM", "recipe")
def _(world):
    return follows_recipe(world, "LiteLLM", world.litellm(), {"LITELLM_API_KEY": KEY})


@check("LiteLLM", "text")
def _(world):
    return text_over_all_apis(world, world.litellm())


@check("LiteLLM", "tool call")
def _(world):
    calls_a_tool(world, f"{world.litellm()}/v1")
    return "by grammar; completions"


@check("LiteLLM", "refused fields")
def _(world):
    url = world.litellm()
    for api in APIS:
        entry = {"reasoning": True, "maxTokens": 2048}
        with world.pith(base(url, api), api, model="four", entry=entry, thinking="low") as pith:
            said_something(pith, pith.ask("hi"))
            assert not pith.seen("auto_retry_start"), pith.story()
    return "thinking; " + ", ".join(APIS)


@check("LiteLLM", "wrong key")
def _(world):
    with world.pith(f"{world.litellm()}/v1", provider={"apiKey": "sk-wrong-123456"}) as pith:
        # Without a database it knows no keys but one, and calls every other a bad request.
        failed_at_once(pith, pith.ask("hi"), "invalid_request", "db")


# nginx


@check("nginx", "gzip")
def _(world):
    headers = {"headers": {"accept-encoding": "gzip"}}
    with world.pith(f"{world.nginx()['plain']}/v1", provider=headers) as pith:
        said_something(pith, pith.ask("hi"))
    with world.pith(f"{world.nginx()['plain']}/nowhere", provider=headers) as pith:
        failed_at_once(pith, pith.ask("hi"), "invalid_request", "File Not Found")
    return "stream and error"


@check("nginx", "TLS")
def _(world):
    url, authority = f"{world.nginx()['tls']}/v1", world.authority()
    for name in ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"]:
        with world.pith(url, env={name: authority}) as pith:
            said_something(pith, pith.ask("hi"))
    with world.pith(url) as pith:
        failed_at_once(pith, pith.ask("hi"), "network", "authority that is not known here", "NODE_EXTRA_CA_CERTS")
    with world.pith(world.nginx()["plain"].replace("http:", "https:"), env={"SSL_CERT_FILE": authority}) as pith:
        failed_at_once(pith, pith.ask("hi"), "network", "does not speak TLS")
    return "private authority, HTTP/2"


@check("nginx", "redirect")
def _(world):
    with world.pith(f"{world.nginx()['plain']}/old/v1") as pith:
        said_something(pith, pith.ask("hi"))
    with world.pith(f"{world.nginx()['plain']}/login/v1") as pith:
        failed_at_once(pith, pith.ask("hi"), "invalid_request", "https://login.test/start")
    return "308 followed, 302 refused"


@check("nginx", "password in the address")
def _(world):
    url = world.nginx()["plain"].replace("http://", "http://pith:secret@")
    with world.pith(f"{url}/private/v1") as pith:
        said_something(pith, pith.ask("hi"))
    with world.pith(f"{url.replace('secret', 'wrong-password')}/private/v1") as pith:
        answer = pith.ask("hi")
        failed_at_once(pith, answer, "auth", "401")
        assert "wrong-password" not in json.dumps(answer), answer


# mitmproxy


@check("mitmproxy", "proxy password")
def _(world):
    proxy = world.mitmproxy()
    url, authority = f"{world.nginx()['tls']}/v1", proxy["authority"]

    def through(password):
        return {"HTTPS_PROXY": f"http://pith:{password}@127.0.0.1:{proxy['http']}", "NODE_EXTRA_CA_CERTS": authority}

    with world.pith(url, env=through("secret")) as pith:
        said_something(pith, pith.ask("hi"))
    with world.pith(url, env=through("wrong")) as pith:
        named = f"the proxy http://127.0.0.1:{proxy['http']} (HTTPS_PROXY) refused"
        failed_at_once(pith, pith.ask("hi"), "auth", named)
    return "right and wrong"


@check("mitmproxy", "TLS")
def _(world):
    proxy = world.mitmproxy()
    env = {"HTTPS_PROXY": f"http://pith:secret@127.0.0.1:{proxy['http']}"}
    with world.pith(f"{world.nginx()['tls']}/v1", env=env) as pith:
        failed_at_once(pith, pith.ask("hi"), "network", "authority that is not known here")
    return "intercepted: refused without its authority"


@check("mitmproxy", "SOCKS")
def _(world):
    proxy = world.mitmproxy()
    env = {
        "ALL_PROXY": f"socks5://pith:secret@127.0.0.1:{proxy['socks']}",
        "NODE_EXTRA_CA_CERTS": proxy["authority"],
    }
    with world.pith(f"{world.nginx()['tls']}/v1", env=env) as pith:
        said_something(pith, pith.ask("hi"))


def table(results):
    servers = list(dict.fromkeys(server for server, _, _ in CHECKS))
    features = list(dict.fromkeys(feature for _, feature, _ in CHECKS))
    lines = ["| feature | " + " | ".join(servers) + " |", "|---" * (len(servers) + 1) + "|"]
    for feature in features:
        cells = [" ".join(results.get((server, feature), ("", ""))).strip() for server in servers]
        lines.append(f"| {feature} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pith", required=True, help="the program")
    parser.add_argument("--cache", required=True, type=pathlib.Path, help="where the servers are installed")
    parser.add_argument("--table", required=True, type=pathlib.Path, help="where the table is written")
    parser.add_argument("only", nargs="*", help="servers or features; all without")
    options = parser.parse_args()
    world, results, counts = World(options.pith, options.cache.resolve()), {}, {"ok": 0, "FAILED": 0, "skipped": 0}
    started = time.monotonic()
    with world.running:
        for server, feature, function in CHECKS:
            if options.only and server not in options.only and feature not in options.only:
                continue
            begun = time.monotonic()
            try:
                outcome, note = "ok", function(world) or ""
            except Skip as reason:
                outcome, note = "skipped", str(reason)
            except Exception as error:  # a check that breaks is a failure like any other
                outcome, note = "FAILED", str(error).replace("\n", " ")[:300]
                if not isinstance(error, AssertionError):
                    traceback.print_exc()
            counts[outcome] += 1
            results[server, feature] = (outcome, f"({note})" if note else "")
            print(f"{outcome:8} {server}: {feature}: {note} [{time.monotonic() - begun:.1f} s]", flush=True)
    options.table.parent.mkdir(parents=True, exist_ok=True)
    options.table.write_text(table(results))
    print(f"{counts['ok']} ok, {counts['FAILED']} failed, {counts['skipped']} skipped; {time.monotonic() - started:.0f} s")
    return 1 if counts["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())
