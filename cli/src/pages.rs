//! `burst man` and `burst completions`: pages of the manual and completions of shells, made from the definitions of the
//! command line themselves.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Command;
use clap_complete::Shell;

use crate::out;

#[derive(clap::Args)]
pub(crate) struct ManArgs {
    /// Folder for the pages, one for each command (burst.1, burst-stream.1 and so on); made where it is missing.
    folder: PathBuf,
}

#[derive(clap::Args)]
pub(crate) struct CompletionArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// What holds for every command, and stands in no definition.
const COMMON: &str = r#".SH "EXIT STATUS"
.TP
0
Fine.
.TP
1
The work was done, and the answer is no.
.TP
2
The work could not be done, or the arguments are wrong.
.TP
128 and more
A signal ended it: 130 after SIGINT, 143 after SIGTERM, 129 after SIGHUP; 141 where nobody reads standard output any
more.
.SH ENVIRONMENT
.TP
BURST_SOCKET
Without \-\-socket: where burst serve listens, and the service that burst devices asks. In burst verify \-\-mode ndk
the services that the library finds, several with colons. No other command heeds it: burst stream, burst run and burst
verify start a driver process of their own unless \-\-socket names a service.
.TP
BURST_ADMIN
Admin socket that burst top looks at without \-\-admin.
.TP
BURST_PYTHON
The Python with LiteRT that burst bench mlts compares with without \-\-python.
.TP
STATE_DIRECTORY, XDG_STATE_HOME
Where burst serve keeps its key, and where it looks for what burst calibrate has written: the first, else burst in the
second, else ~/.local/state/burst.
.TP
XDG_RUNTIME_DIR
Where burst.sock lies unless something else is said; without it /run/user/UID.
.TP
BURST_LOG
Which log lines are written to standard error, such as info or burst_server=debug.
.TP
BURST_VLOG
Tags of the verbose log, as with \-\-vlog.
.TP
NO_COLOR
If set, nothing is coloured.
"#;

/// Writes a page for every command.
pub(crate) fn man(args: &ManArgs, command: Command) -> Result<ExitCode> {
    let folder = &args.folder;
    let cannot = || format!("cannot write pages into {}", folder.display());
    fs::create_dir_all(folder).with_context(cannot)?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    write_pages(&command, folder).with_context(cannot)?;
    Ok(ExitCode::SUCCESS)
}

/// The page of a command, then those of the commands below it.
fn write_pages(command: &Command, folder: &Path) -> Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write_pages(below, folder)?;
    }
    let path = clap_mangen::Man::new(command.clone()).generate_to(folder)?;
    let mut page = OpenOptions::new().append(true).open(path)?;
    page.write_all(COMMON.as_bytes())?;
    Ok(())
}

/// Prints the completions for a shell.
pub(crate) fn completions(args: &CompletionArgs, mut command: Command) -> Result<ExitCode> {
    // In memory first: the generator does not expect that its reader may be gone.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "burst", &mut script);
    out::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
