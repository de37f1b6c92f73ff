//! Real MCP servers from npm and PyPI, which `tests/mcp/run` installs and drives; only if `PITH_TEST_MCP=1` asks for it,
//! because that needs npm, Python and the first time a network.

use std::path::Path;
use std::process::Command;

use pith_testkit::skip;

#[test]
fn real_servers_are_listed_called_and_ended() {
    if std::env::var("PITH_TEST_MCP").as_deref() != Ok("1") {
        return skip("PITH_TEST_MCP=1 runs it; .ci/run servers does so, too");
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/mcp/run");
    let status = Command::new(script).env("PITH", env!("CARGO_BIN_EXE_pith")).status().expect("bash is there");
    assert!(status.success(), "{status}");
}
