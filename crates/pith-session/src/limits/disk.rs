//! By how much the project has grown: measured before each request while that is limited.
//!
//! The sum at the beginning is in the session file, so a restart counts on from there.

use std::io;
use std::time::{Duration, Instant};

use pith_agent::{Turn, blocking};
use pith_checkpoints::disk_usage;
use pith_protocol::{Amount, LimitName};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::jobs::{Job, JobEnd};
use crate::session::Session;

/// How long a request waits until the project is measured.
const PATIENCE: Duration = Duration::from_secs(2);

const MIB: f64 = 1024.0 * 1024.0;

/// What the project takes of the disk, in bytes, as the branch has recorded it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DiskRecord {
    /// When it was first measured.
    start: u64,
    last: u64,
}

/// What is known of the project's size.
#[derive(Debug, Default)]
pub(super) struct Disk {
    /// Bytes, as last measured in this process.
    measured: Option<u64>,
    /// Why it could not be measured the last time.
    problem: Option<String>,
    /// Whether it was measured for the next request.
    is_fresh: bool,
}

impl Disk {
    fn note(&mut self, measured: io::Result<u64>) {
        self.problem = match measured {
            Ok(bytes) => {
                self.measured = Some(bytes);
                None
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                Some(format!("measuring the project takes longer than {PATIENCE:?}"))
            }
            Err(error) => Some(format!("the project cannot be measured: {error}")),
        };
    }

    /// What is to be recorded on a branch that has recorded this.
    pub fn record(&self, recorded: Option<DiskRecord>) -> Option<DiskRecord> {
        let Some(last) = self.measured else { return recorded };
        Some(DiskRecord { start: recorded.map_or(last, |recorded| recorded.start), last })
    }

    /// By how many MiB the project has grown.
    pub fn growth(&self, recorded: Option<DiskRecord>) -> Amount {
        let grown = self.record(recorded).map_or(0, |record| record.last.saturating_sub(record.start));
        Amount((grown as f64 / MIB * 1000.0).floor() / 1000.0)
    }

    /// Why the growth is not known.
    pub fn unwatched(&self) -> Option<String> {
        self.problem.as_ref().map(|why| format!("limits.diskMb cannot be watched: {why}"))
    }
}

impl Session {
    /// Keeps a run waiting for its next request until the project is measured; returns the channel if it is, or need
    /// not be.
    pub(crate) fn measure_before(&mut self, turn: oneshot::Sender<Turn>) -> Option<oneshot::Sender<Turn>> {
        let is_limited = self.governor.limits().max(LimitName::DiskMb).is_some();
        let is_measured = std::mem::take(&mut self.governor.disk.is_fresh) || self.activity.is_stopping();
        match self.activity.run() {
            Some(run) if is_limited && !is_measured => {
                let cancel = run.cancel.clone();
                self.measure_disk(async move { cancel.cancelled().await }, Some(turn));
                None
            }
            _ => Some(turn),
        }
    }

    /// Called when a prompt is refused: the user may have made room.
    pub(crate) fn measure_again(&mut self) {
        if self.governor.limits().max(LimitName::DiskMb).is_some() {
            self.measure_disk(std::future::pending(), None);
        }
    }

    fn measure_disk(
        &mut self,
        stopped: impl Future<Output = ()> + Send + 'static,
        turn: Option<oneshot::Sender<Turn>>,
    ) {
        let directory = self.store.cwd().to_owned();
        let measuring = blocking(move || disk_usage(&directory, Instant::now() + PATIENCE));
        self.jobs.spawn(Job::Background, async move {
            let measured = tokio::select! {
                biased;
                () = stopped => None,
                measured = measuring => measured.ok(),
            };
            JobEnd::Measured { measured, turn }
        });
    }

    /// Called when the project is measured; `None` if the run was stopped before.
    pub(crate) fn on_measured(&mut self, measured: Option<io::Result<u64>>, turn: Option<oneshot::Sender<Turn>>) {
        if let Some(measured) = measured {
            self.governor.disk.note(measured);
            self.record_usage();
            self.count_usage();
        }
        if let Some(turn) = turn {
            self.governor.disk.is_fresh = true;
            self.on_servers_ready(turn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEGABYTE: u64 = 1 << 20;

    #[test]
    fn growth_counts_from_the_first_measurement_of_the_branch() {
        let mut disk = Disk::default();
        assert_eq!((disk.record(None), disk.growth(None)), (None, Amount(0.0)));
        disk.note(Ok(5 * MEGABYTE));
        assert_eq!(disk.growth(None), Amount(0.0));
        let recorded = disk.record(None);
        disk.note(Ok(7 * MEGABYTE + MEGABYTE / 2));
        assert_eq!(disk.growth(recorded), Amount(2.5));
        let restarted = Disk::default();
        assert_eq!(restarted.growth(disk.record(recorded)), Amount(2.5));
        disk.note(Ok(MEGABYTE));
        assert_eq!(disk.growth(recorded), Amount(0.0));
    }

    #[test]
    fn a_project_that_cannot_be_measured_is_a_problem_until_it_can() {
        let mut disk = Disk::default();
        disk.note(Err(io::ErrorKind::TimedOut.into()));
        let why = "limits.diskMb cannot be watched: measuring the project takes longer than 2s";
        assert_eq!(disk.unwatched().as_deref(), Some(why));
        disk.note(Ok(1));
        assert_eq!(disk.unwatched(), None);
    }
}
