//! Targets without libFuzzer: lists them, replays inputs, writes the kept seeds.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fuzz::{TARGETS, Target};

const USAGE: &str = "\
usage: fuzz-tool list                    names of the targets
       fuzz-tool replay TARGET PATH...   runs files, or all files of folders, through a target
       fuzz-tool seeds FOLDER            writes the seeds of every target to FOLDER/TARGET/";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["list"] => {
            for target in TARGETS {
                println!("{:22} {}", target.name, target.about);
            }
            Ok(())
        }
        ["replay", name, paths @ ..] if !paths.is_empty() => replay(name, paths),
        ["seeds", folder] => write_seeds(Path::new(folder)),
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn replay(name: &str, paths: &[&str]) -> Result<(), String> {
    let target = fuzz::target(name).ok_or_else(|| {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        format!("no target {name:?}; there are {}", names.join(", "))
    })?;
    fuzz::look_for_leaks();
    let mut files = Vec::new();
    for path in paths {
        files_of(Path::new(path), &mut files)?;
    }
    let passed = files.iter().map(|file| replay_one(target, file)).sum::<Result<usize, _>>()?;
    println!("{name}: {} inputs, {passed} of them past the first checks, no finding", files.len());
    Ok(())
}

fn files_of(path: &Path, into: &mut Vec<PathBuf>) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("{}: {error}", path.display());
    if !std::fs::metadata(path).map_err(wrong)?.is_dir() {
        into.push(path.to_path_buf());
        return Ok(());
    }
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(path).map_err(wrong)?.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    into.extend(entries.into_iter().filter(|entry| entry.is_file()));
    Ok(())
}

/// A finding is a panic: it ends the program, after the name of the file.
fn replay_one(target: &Target, file: &Path) -> Result<usize, String> {
    let bytes = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    println!("{}", file.display());
    Ok(usize::from((target.run)(&bytes)))
}

fn write_seeds(folder: &Path) -> Result<(), String> {
    for target in TARGETS {
        let folder = folder.join(target.name);
        std::fs::create_dir_all(&folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        let seeds = (target.seeds)();
        for (name, bytes) in &seeds {
            let file = folder.join(name);
            std::fs::write(&file, bytes).map_err(|error| format!("{}: {error}", file.display()))?;
        }
        println!("{}: {} seeds", folder.display(), seeds.len());
    }
    Ok(())
}
