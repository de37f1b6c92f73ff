//! The list of the built-in tools. A new tool is a file of its own and a row here.

use std::sync::Arc;

use pith_agent::Tool;

use crate::search::{find, grep, ls};
use crate::workbench::Workbench;
use crate::{bash, edit, read, write};

/// A row of the list.
pub struct Builtin {
    pub name: &'static str,
    /// Whether the model has it by default.
    pub is_default: bool,
    /// Whether it changes nothing on the machine.
    pub is_read_only: bool,
    make: fn(Arc<Workbench>) -> Arc<dyn Tool>,
}

const fn row(
    name: &'static str,
    is_default: bool,
    is_read_only: bool,
    make: fn(Arc<Workbench>) -> Arc<dyn Tool>,
) -> Builtin {
    Builtin { name, is_default, is_read_only, make }
}

/// The list, in the order in which tools are shown.
#[rustfmt::skip] // columns
pub const BUILTINS: [Builtin; 7] = [
    //           default, read-only
    row("read",  true,  true,  |workbench| Arc::new(read::Read::new(workbench))),
    row("bash",  true,  false, |workbench| Arc::new(bash::Bash::new(workbench))),
    row("edit",  true,  false, |workbench| Arc::new(edit::EditTool::new(workbench))),
    row("write", true,  false, |workbench| Arc::new(write::Write::new(workbench))),
    row("grep",  false, true,  |workbench| Arc::new(grep::tool(workbench))),
    row("find",  false, true,  |workbench| Arc::new(find::tool(workbench))),
    row("ls",    false, true,  |workbench| Arc::new(ls::tool(workbench))),
];

/// Makes all built-in tools.
pub fn builtin_tools(workbench: &Arc<Workbench>) -> Vec<Arc<dyn Tool>> {
    BUILTINS.iter().map(|builtin| (builtin.make)(Arc::clone(workbench))).collect()
}

/// Makes one built-in tool.
pub fn builtin_tool(name: &str, workbench: &Arc<Workbench>) -> Option<Arc<dyn Tool>> {
    BUILTINS.iter().find(|builtin| builtin.name == name).map(|builtin| (builtin.make)(Arc::clone(workbench)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workbench::WorkbenchOptions;

    #[test]
    fn tools_have_the_names_of_their_rows() {
        let workbench = Workbench::new("/".into(), WorkbenchOptions::default());
        let names: Vec<_> = builtin_tools(&workbench).iter().map(|tool| tool.spec().name.to_string()).collect();
        assert_eq!(names, BUILTINS.map(|builtin| builtin.name));
    }
}
