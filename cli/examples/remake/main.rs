//! Runs the commands in documents again and writes what they print now behind them: `dist/tour` calls it.
//!
//! `remake FILE...`: blocks of commands are those of `console.rs`. All commands of a document run one after the other in
//! a folder of their own, where `burst` is this build's and `shapes.tflite` the built-in model. A command with ` &` behind
//! it goes on until the document ends. Standard output is a terminal of a hundred columns; standard error stands behind it.

mod console;

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const TERMINAL: Winsize = Winsize { ws_row: 50, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
/// How long a command in the background has for its first line; one that prints none is only given time to begin.
const BEGINNING: Duration = Duration::from_secs(3);
/// What begins a path that only this machine has.
const PLACES: [&str; 4] = ["/tmp/", "/home/", "/root/", "/work/"];

fn main() -> Result<()> {
    let files: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if files.is_empty() {
        bail!("which documents? remake FILE...");
    }
    for file in files {
        let name = file.display();
        let document = std::fs::read_to_string(&file).with_context(|| format!("{name}"))?;
        let mut place = Place::new()?;
        let remade = console::remade::<Stopped>(&document, |command| {
            eprintln!("{name}:{}: {}", command.line, command.text);
            let printed = place.run(command.text);
            printed.map_err(|why| Stopped(why.context(format!("{name}:{}", command.line))))
        });
        let remade = remade.map_err(|Stopped(why)| why)?;
        std::fs::write(&file, remade).with_context(|| format!("{name}"))?;
    }
    Ok(())
}

/// Why a document cannot be remade.
struct Stopped(anyhow::Error);

impl From<String> for Stopped {
    fn from(why: String) -> Self {
        Stopped(anyhow!(why))
    }
}

/// Where the commands of a document run.
struct Place {
    folder: tempfile::TempDir,
    programs: PathBuf,
    background: Vec<Child>,
}

impl Place {
    fn new() -> Result<Place> {
        let own = std::env::current_exe()?;
        let programs = own.parent().and_then(Path::parent).context("no folder of programs")?;
        if !programs.join("burst").exists() {
            bail!("{}: no burst here; build it first", programs.display());
        }
        let folder = tempfile::tempdir()?;
        let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/shapes.tflite");
        std::fs::copy(model, folder.path().join("shapes.tflite"))?;
        Ok(Place { folder, programs: programs.to_owned(), background: Vec::new() })
    }

    /// What a command prints; of one in the background its first line.
    fn run(&mut self, text: &str) -> Result<String> {
        let printed = match text.strip_suffix(" &") {
            Some(text) => self.start(text)?,
            None => self.run_to_its_end(text)?,
        };
        let own = format!("{}/", self.folder.path().display());
        let printed = printed.replace(&own, "");
        match PLACES.into_iter().find(|place| printed.contains(place)) {
            Some(place) => bail!("{text}: prints a path below {place}:\n{printed}"),
            None => Ok(printed),
        }
    }

    fn shell(&self, text: &str) -> Result<Command> {
        let mut paths = vec![self.programs.clone()];
        paths.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        let mut command = Command::new("sh");
        command.args(["-c", text]).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("PATH", std::env::join_paths(paths)?).env("NO_COLOR", "1");
        for name in ["HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "TMPDIR"] {
            command.env(name, self.folder.path());
        }
        for name in ["BURST_SOCKET", "BURST_LOG", "BURST_VLOG", "STATE_DIRECTORY"] {
            command.env_remove(name);
        }
        Ok(command)
    }

    fn run_to_its_end(&self, text: &str) -> Result<String> {
        let terminal = openpty(Some(&TERMINAL), None)?;
        let mut command = self.shell(text)?;
        let mut child =
            command.stdout(Stdio::from(terminal.slave)).stderr(Stdio::piped()).spawn()?;
        drop(command); // our copy of the terminal's other end: with it reading would not end
        let mut errors = child.stderr.take().context("piped")?;
        let errors = std::thread::spawn(move || {
            let mut text = String::new();
            errors.read_to_string(&mut text).map(|_| text)
        });
        let mut printed = Vec::new();
        let mut buffer = [0; 4096];
        let mut ours = File::from(terminal.master);
        // The kernel tells the end by an error.
        while let Ok(read @ 1..) = ours.read(&mut buffer) {
            printed.extend_from_slice(&buffer[..read]);
        }
        let status = child.wait()?;
        let mut printed = String::from_utf8(printed)?.replace("\r\n", "\n");
        printed += &errors.join().map_err(|_| anyhow!("standard error cannot be read"))??;
        match status.code() {
            Some(0) => {}
            Some(code) => printed += &format!("[exit status {code}]\n"),
            None => bail!("{text}: {status}"),
        }
        Ok(printed)
    }

    fn start(&mut self, text: &str) -> Result<String> {
        let mut command = self.shell(&format!("exec {text}"))?;
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let out = child.stdout.take().context("piped")?;
        self.background.push(child);
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let mut lines = BufReader::new(out).lines();
            // Nobody may be waiting any more. The rest is read, so that the command can go on.
            let _ = lines.next().map(|line| sender.send(line));
            lines.for_each(drop);
        });
        match receiver.recv_timeout(BEGINNING) {
            Ok(line) => Ok(line?),
            Err(_) => Ok(String::new()),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // The last first: clients, then their service.
        for mut child in self.background.drain(..).rev() {
            if let Ok(pid) = i32::try_from(child.id()) {
                let _ = kill(Pid::from_raw(pid), Signal::SIGTERM); // it may be gone
            }
            let _ = child.wait();
        }
    }
}
