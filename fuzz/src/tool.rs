//! Targets without libFuzzer: lists them, replays inputs, writes mutations of inputs and the kept seeds.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fuzz::{Mutator, TARGETS, Target};

const USAGE: &str = "\
usage: fuzz-tool list                    names of the targets
       fuzz-tool replay TARGET PATH...   runs files, or all files of folders, through a target
       fuzz-tool mutate COUNT FOLDER PATH...  writes so many mutations of files, or of all files of folders,
                                         to a new FOLDER: the same on every machine
       fuzz-tool seeds FOLDER            writes the seeds of every target to FOLDER/TARGET/";
/// Most mutations in one folder.
const MUTATIONS_MAX: u32 = 1_000_000;
/// What they begin with.
const MUTATIONS: u64 = 0x9E37_79B9_7F4A_7C15;

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
        ["mutate", count, folder, paths @ ..] if !paths.is_empty() => {
            write_mutations(count, Path::new(folder), paths)
        }
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
    let files = all_files(paths)?;
    let passed = files.iter().map(|file| replay_one(target, file)).sum::<Result<usize, _>>()?;
    println!("{name}: {} inputs, {passed} of them past the first checks, no finding", files.len());
    Ok(())
}

fn all_files(paths: &[&str]) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for path in paths {
        files_of(Path::new(path), &mut files)?;
    }
    Ok(files)
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
    let bytes = read(file)?;
    println!("{}", file.display());
    Ok(usize::from((target.run)(&bytes)))
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))
}

fn write_mutations(count: &str, folder: &Path, paths: &[&str]) -> Result<(), String> {
    let count: u32 = count.parse().ok().filter(|count| *count <= MUTATIONS_MAX).ok_or(USAGE)?;
    let files = all_files(paths)?;
    let seeds: Vec<Vec<u8>> = files.iter().map(|file| read(file)).collect::<Result<_, _>>()?;
    if seeds.is_empty() {
        return Err("there is nothing to mutate".to_owned());
    }
    let wrong = |path: &Path, error: std::io::Error| Err(format!("{}: {error}", path.display()));
    std::fs::create_dir(folder).or_else(|error| wrong(folder, error))?;
    let mut mutator = Mutator::new(MUTATIONS);
    for number in 0..count {
        let file = folder.join(format!("mutated_{number:06}"));
        std::fs::write(&file, mutator.mutated(&seeds)).or_else(|error| wrong(&file, error))?;
    }
    println!("{}: {count} mutations of {} inputs", folder.display(), files.len());
    Ok(())
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
