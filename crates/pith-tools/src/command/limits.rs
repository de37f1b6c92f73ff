//! What one command of the model may use, and what is said of one that has used more.

use pith_protocol::{LimitName, LimitUse};

use crate::process::{Exceeded, ProcessLimits};

const MIB: u64 = 1024 * 1024;

/// The exit code of a shell whose command was ended for the size of a file: 128 and SIGXFSZ.
const FILE_TOO_LARGE: i32 = 153;

/// What programs print that were refused a larger file, or more memory.
const FILE_TEXTS: &[&str] = &["File too large", "File size limit exceeded", "EFBIG:"];
const MEMORY_TEXTS: &[&str] =
    &["Cannot allocate memory", "memory exhausted", "out of memory", "Out of memory", "MemoryError", "ENOMEM:"];

/// What one command of the model may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandLimits {
    pub processes: ProcessLimits,
    /// Output, in MiB.
    pub output_mb: Option<u64>,
}

impl CommandLimits {
    pub fn is_empty(&self) -> bool {
        *self == CommandLimits::default()
    }

    /// The output that passes the limit.
    pub(crate) fn of_output(&self, bytes: u64) -> Option<LimitUse> {
        let max = self.output_mb.filter(|max| bytes > max.saturating_mul(MIB))?;
        Some(LimitUse { name: LimitName::OutputMb, used: bytes.div_ceil(MIB).into(), max: max.into() })
    }

    /// What a supervisor has ended the command for.
    pub(crate) fn of_exceeded(&self, exceeded: Exceeded) -> LimitUse {
        let ProcessLimits { processes, memory_mb, .. } = self.processes;
        let (name, used, max) = match exceeded {
            Exceeded::Processes(used) => (LimitName::Processes, used, processes),
            Exceeded::Memory(used) => (LimitName::MemoryMb, used, memory_mb),
        };
        LimitUse { name, used: u64::from(used).into(), max: max.unwrap_or_default().into() }
    }

    /// What the kernel has refused a command that failed, as far as its exit code and its output tell.
    pub(crate) fn of_failure(&self, code: i32, output: &str) -> Option<LimitUse> {
        let says = |texts: &[&str]| texts.iter().any(|text| output.contains(text));
        let ProcessLimits { memory_mb, file_mb, .. } = self.processes;
        let file = file_mb.filter(|_| code == FILE_TOO_LARGE || says(FILE_TEXTS)).map(|max| (LimitName::FileMb, max));
        let memory = memory_mb.filter(|_| says(MEMORY_TEXTS)).map(|max| (LimitName::MemoryMb, max));
        file.or(memory).map(|(name, max)| LimitUse { name, used: max.into(), max: max.into() })
    }
}
