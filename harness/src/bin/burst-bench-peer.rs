//! One end of a measurement and nothing else: what tests of the harness start.

use std::process::ExitCode;

use burst_harness::{CHILD_ARGUMENT, own_peers, serve_if_asked};

fn main() -> ExitCode {
    serve_if_asked(&own_peers()).unwrap_or_else(|| {
        eprintln!("this program is one end of a measurement; it is started with {CHILD_ARGUMENT}");
        ExitCode::from(2)
    })
}
