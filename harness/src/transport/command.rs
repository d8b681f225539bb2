//! The command line: the same in `burst bench transport` and in the program with all peers.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use crate::error::HarnessError;
use crate::progress::Progress;
use crate::report::{Format, Paper};
use crate::transport::case::{Case, Placement, REQUEST_MAX, REQUEST_SIZES};
use crate::transport::checks;
use crate::transport::peers::Peer;
use crate::transport::plan::{Options, run_while};
use crate::transport::process::{Runner, find};
use crate::transport::subject::PeerInCase;
use crate::wait::WaitKind;

/// What to measure.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Rounds that must count for each row.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Bytes of a request: 64, 256, 1024; several with commas.
    #[arg(long, value_delimiter = ',', default_values_t = REQUEST_SIZES, value_parser = size)]
    pub sizes: Vec<usize>,
    /// How both ends wait; several with commas.
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = WaitKind::ALL)]
    pub wait: Vec<WaitKind>,
    /// Where the two processes run; several with commas.
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = Placement::ALL)]
    pub placement: Vec<Placement>,
    /// Only these peers, several with commas; floors always run.
    #[arg(long, value_delimiter = ',')]
    pub peers: Vec<String>,
    /// Small messages only.
    #[arg(long)]
    pub no_frames: bool,
    /// Sweep over service times (0 to 500 us), rates of requests (1 per second to full speed) and requests
    /// under way (1 to 32) too: some minutes more.
    #[arg(long)]
    pub sweeps: bool,
    /// Write a page with drawings, which needs no other file; includes the sweeps.
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Do not count system calls (where strace is installed they are counted in runs of their own).
    #[arg(long)]
    pub no_strace: bool,
    /// Two short rounds: to see that everything works, not to compare.
    #[arg(long)]
    pub quick: bool,
    /// End after so many minutes at most, whatever a peer does, with what was measured by then.
    #[arg(long, value_name = "MINUTES", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1440))]
    pub minutes: u64,
    /// Hold ratios to the bounds in this file, such as benches/transport.json; one that does not keep to its bound
    /// ends with status 1.
    #[arg(long, value_name = "FILE")]
    pub check: Option<PathBuf>,
    /// How the figures are written.
    #[arg(long, value_enum, default_value_t, conflicts_with = "json")]
    pub format: Format,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Measures with these peers and prints what was found.
    ///
    /// The program must have called [`serve_if_asked`](crate::serve_if_asked), with the same peers,
    /// before it came here.
    ///
    /// # Errors
    /// As [`run_while`]; [`HarnessError::UnknownPeer`].
    pub fn run(&self, peers: &[&dyn Peer], out: &mut impl Write) -> Result<ExitCode, HarnessError> {
        let format = self.format;
        self.run_while(peers, &mut Paper { format, ..Paper::plain(out) }, &|| true)
    }

    /// The same for as long as `go_on` says so; what was found by then is printed, also where an error ends it.
    ///
    /// # Errors
    /// As [`Args::run`].
    pub fn run_while(
        &self,
        peers: &[&dyn Peer],
        paper: &mut Paper<'_>,
        go_on: &dyn Fn() -> bool,
    ) -> Result<ExitCode, HarnessError> {
        for name in &self.peers {
            find(peers, name)?;
        }
        let bounds = self.check.as_deref().map(checks::bounds).transpose()?;
        let options = Options {
            rounds: if self.quick { self.rounds.min(2) } else { self.rounds },
            sizes: self.sizes.clone(),
            waits: self.wait.clone(),
            placements: self.placement.clone(),
            peers: self.peers.clone(),
            frames: !self.no_frames,
            sweeps: self.sweeps || self.report.is_some(),
            count_calls: !self.no_strace && !self.quick,
            quick: self.quick,
            limit: Duration::from_secs(self.minutes * 60),
        };
        let mut progress = Progress::default();
        let runner = Runner::this_program()?;
        let mut watch = |round: u32, subject: &PeerInCase<'_>| {
            let Case { wait, placement, request_bytes, .. } = &subject.case;
            let (wait, placement, peer) = (wait.name(), placement.name(), subject.peer.name());
            progress
                .show(&format!("round {round}: {wait}, {placement}, {request_bytes} B, {peer}"));
        };
        let report = run_while(&runner, peers, &options, &mut watch, go_on);
        progress.end();
        let (mut report, error) = report?;
        if report.found.rows.is_empty()
            && let Some(error) = error
        {
            return Err(error);
        }
        if let Some(bounds) = bounds {
            bounds.hold(&mut report.found.checks);
        }
        report.print(self.report.as_deref(), self.json, paper)?;
        if let Some(error) = error {
            return Err(error);
        }
        let missed = report.found.checks.iter().any(|check| check.ok == Some(false));
        Ok(ExitCode::from(u8::from(missed)))
    }
}

fn size(text: &str) -> Result<usize, String> {
    let size: usize = text.parse().map_err(|_| "expected a number of bytes".to_owned())?;
    if size == 0 || size > REQUEST_MAX || !size.is_multiple_of(64) {
        return Err(format!("expected a multiple of 64 up to {REQUEST_MAX}"));
    }
    Ok(size)
}
