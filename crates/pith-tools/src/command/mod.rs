//! What the `bash` tool and the `bash` command of the protocol share: the shell and its environment, following a
//! command to its end, and keeping the end of its output in bounded memory.

pub(crate) mod capture;
pub(crate) mod decode;
pub(crate) mod environment;
pub(crate) mod follow;
pub(crate) mod limits;
pub(crate) mod sanitise;
pub(crate) mod spill;
pub(crate) mod tail;
