//! `cargo run --release -p benches -- cache`: what it takes to make a model ready in full and from the files of
//! a compilation, alternately, in this process and through a service.

use std::fs::File;
use std::hint::black_box;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use burst_client::Client;
use burst_driver::{CacheKey, CpuDevice};
use burst_hal::{
    Caller, CompilationCache, DataLocation, Device, ErrorStatus, ExecutionOptions, HeapMemory,
    Model, Pool, PrepareOptions, PreparedModel, Request, RequestArgument, RequestPool,
};
use burst_harness::HarnessError;
use burst_harness::bounds::{Bounds, Check};
use burst_harness::engine::{Spread, median};
use burst_harness::machine::Machine;
use burst_harness::report::{Column, Table, time};
use burst_server::{Service, ServiceOptions};
use serde::Serialize;

use crate::checks;

/// Which models, and how often.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// A `.tflite` file, or a folder with some.
    #[arg(long, value_name = "PATH", required = true)]
    models: Vec<PathBuf>,
    /// Pairs of preparations of each model.
    #[arg(long, value_name = "N", default_value_t = 31, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Hold ratios to the bounds in this file, such as benches/cache.json; one that does not keep to its bound
    /// ends with status 1.
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

/// Where a device is that nothing has to be sent to.
const IN_PROCESS: &str = "in process";

/// Where it is behind a socket.
const SERVICE: &str = "service";
/// So many of the largest models have a ratio of their own: they have most to gain.
const LARGEST: usize = 3;

/// What was found.
#[derive(Debug, Serialize)]
struct Found {
    machine: Machine,
    rows: Vec<Row>,
    checks: Vec<Check>,
}

/// One model on one device.
#[derive(Debug, Serialize)]
struct Row {
    model: String,
    place: &'static str,
    model_bytes: u64,
    data_bytes: u64,
    /// Medians, in nanoseconds.
    full_ns: f64,
    from_cache_ns: f64,
    /// Of pairs, from the cache to in full.
    ratio: Spread,
    /// Reading the file of the model and importing it, which whoever takes it from the cache need not do.
    import_ns: f64,
    /// Of the same pairs, from the cache to in full with this before it: the start of an application, either way.
    start_ratio: Spread,
    same_bits: bool,
}

impl Args {
    /// Measures and prints. Ends with 1 where results differ, or a ratio does not keep to a bound that it is held to. In
    /// one process the whole start is judged: a model that is there already, and whose weights are used where they lie, is
    /// prepared without a look at them, and files have to be read and checked
    /// (`docs/decisions/0022-compilations-in-files.md`).
    ///
    /// # Errors
    /// Files that are no models; a device that does not prepare one; writing.
    pub fn run(&self, out: &mut impl Write) -> Result<ExitCode, HarnessError> {
        let bounds = self.check.as_deref().map(bounds).transpose()?;
        let machine = Machine::detect();
        let local = CpuDevice::default().with_cache_key(CacheKey::new([1; CacheKey::BYTES]));
        let (ours, theirs) = seqpacket_pair()?;
        let device = CpuDevice::default().with_cache_key(CacheKey::new([1; CacheKey::BYTES]));
        let service = Service::new(vec![Arc::new(device)], ServiceOptions::default());
        let service = std::thread::spawn(move || service.serve_socket(theirs));
        let client = Client::from_socket(ours).map_err(HarnessError::peer)?;
        let remote = client.devices().map_err(HarnessError::peer)?.remove(0);
        let mut rows = Vec::new();
        for path in self.files()? {
            let name = path.file_stem().map_or_else(String::new, |n| n.to_string_lossy().into());
            if let Err(error) = import(&path) {
                // Such as one that only runs in part.
                eprintln!("left out: {error}");
                continue;
            }
            eprintln!("{name}");
            let devices: [(&'static str, &dyn Device); 2] =
                [(IN_PROCESS, &local), (SERVICE, &remote)];
            for (place, device) in devices {
                rows.push(self.one(&path, &name, place, device)?);
            }
        }
        drop((remote, client));
        let ended = service.join().map_err(|_| HarnessError::peer("the service panicked"))?;
        ended.map_err(HarnessError::peer)?;
        let mut checks = ratios(&rows);
        if let Some(bounds) = bounds {
            bounds.hold(&mut checks);
        }
        let found = Found { machine, rows, checks };
        if self.json {
            serde_json::to_writer(&mut *out, &found)?;
            writeln!(out)?;
        } else {
            found.write_text(out)?;
        }
        Ok(if found.is_well() { ExitCode::SUCCESS } else { ExitCode::from(1) })
    }

    fn files(&self) -> Result<Vec<PathBuf>, HarnessError> {
        let mut files = Vec::new();
        for path in &self.models {
            if path.is_dir() {
                let entries = std::fs::read_dir(path).map_err(HarnessError::peer)?;
                let inside = entries.flatten().map(|entry| entry.path());
                files.extend(inside.filter(|p| p.extension().is_some_and(|e| e == "tflite")));
            } else {
                files.push(path.clone());
            }
        }
        files.sort();
        Ok(files)
    }

    fn one(
        &self,
        path: &Path,
        name: &str,
        place: &'static str,
        device: &dyn Device,
    ) -> Result<Row, HarnessError> {
        let failed = |failure: burst_hal::Failure| HarnessError::peer(format!("{name}: {failure}"));
        let model = import(path)?;
        let file =
            || Ok::<_, HarnessError>(vec![tempfile::tempfile().map_err(HarnessError::peer)?]);
        let cache = CompilationCache { token: [1; 32], model: file()?, data: file()? };
        let (options, caller) = (PrepareOptions::default(), Caller::default());
        let kept = device.prepare_model_caching(&model, &options, &cache, &caller);
        let kept = execute(&*kept.map_err(failed)?, &model)?;
        let restored = device.prepare_model_from_cache(&cache, None, &caller).map_err(failed)?;
        let same_bits = execute(&*restored, &model)? == kept;
        drop(restored);
        let (mut full, mut from_cache, mut imports) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..self.rounds {
            let in_full = || device.prepare_model(&model, &options).map_err(failed);
            let restored =
                || device.prepare_model_from_cache(&cache, None, &caller).map_err(failed);
            // Whoever comes first finds caches colder: so each does in turn.
            if round % 2 == 0 {
                full.push(timed(in_full)?);
                from_cache.push(timed(restored)?);
            } else {
                from_cache.push(timed(restored)?);
                full.push(timed(in_full)?);
            }
            imports.push(timed(|| import(path))?);
        }
        let ratio = Spread::of_ratios(from_cache.iter().copied().zip(full.iter().copied()));
        let starts = full.iter().zip(&imports).map(|(full, import)| full + import);
        let start_ratio = Spread::of_ratios(from_cache.iter().copied().zip(starts));
        let no_rounds = || HarnessError::peer("no rounds");
        let length = |file: &File| file.metadata().map_or(0, |about| about.len());
        Ok(Row {
            model: name.to_owned(),
            place,
            model_bytes: length(&cache.model[0]),
            data_bytes: length(&cache.data[0]),
            full_ns: median(full).unwrap_or(0.0),
            from_cache_ns: median(from_cache).unwrap_or(0.0),
            ratio: ratio.ok_or_else(no_rounds)?,
            import_ns: median(imports).unwrap_or(0.0),
            start_ratio: start_ratio.ok_or_else(no_rounds)?,
            same_bits,
        })
    }
}

fn seqpacket_pair() -> Result<(std::os::fd::OwnedFd, std::os::fd::OwnedFd), HarnessError> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    socketpair(family, kind, SocketFlags::CLOEXEC, None).map_err(HarnessError::system("socketpair"))
}

fn import(path: &Path) -> Result<Model, HarnessError> {
    let named = |error: String| HarnessError::peer(format!("{}: {error}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| named(error.to_string()))?;
    let imported = burst_tflite::import(&bytes).map_err(|error| named(error.to_string()))?;
    Ok(imported.model)
}

/// Nanoseconds; what was made is dropped after the clock was read.
fn timed<T>(make: impl FnOnce() -> Result<T, HarnessError>) -> Result<f64, HarnessError> {
    let start = Instant::now();
    let made = black_box(make()?);
    let took = start.elapsed();
    drop(made);
    Ok(took.as_secs_f64() * 1e9)
}

/// The outputs of one execution whose inputs are bytes of a fixed pattern.
fn execute(prepared: &dyn PreparedModel, model: &Model) -> Result<Vec<u8>, HarnessError> {
    let bytes = |index: &u32| {
        let operand = model.main.operands.get(*index as usize);
        let length = operand.and_then(|one| one.ty.byte_length(&one.dimensions)).unwrap_or(0);
        usize::try_from(length).unwrap_or(0)
    };
    let lengths = |indexes: &[u32]| indexes.iter().map(bytes).collect::<Vec<_>>();
    let (inputs, outputs) =
        (lengths(&model.main.input_indexes), lengths(&model.main.output_indexes));
    // Small whole numbers, of which floats are small, too.
    let input: Vec<u8> =
        (0..inputs.iter().sum()).map(|at: usize| (at % 63).to_le_bytes()[0]).collect();
    let output = Arc::new(HeapMemory::new(vec![0; outputs.iter().sum()]));
    let arguments = |pool_index, lengths: &[usize]| {
        let mut offset = 0;
        let mut argument = |length: &usize| {
            let length = u32::try_from(*length).unwrap_or(u32::MAX);
            let location = DataLocation { pool_index, offset, length };
            offset += length;
            RequestArgument { location, ..RequestArgument::default() }
        };
        lengths.iter().map(&mut argument).collect()
    };
    let request = Request {
        inputs: arguments(0, &inputs),
        outputs: arguments(1, &outputs),
        pools: [Arc::new(HeapMemory::new(input)) as Pool, Arc::clone(&output) as Pool]
            .map(RequestPool::Memory)
            .to_vec(),
    };
    let result = prepared.execute_synchronously(&request, &ExecutionOptions::default());
    match result.status {
        ErrorStatus::None => Ok(output.to_vec()),
        status => Err(HarnessError::peer(format!("an execution: {}", status.name()))),
    }
}

impl Found {
    /// Whether all computed the same, and keeps to its bounds where it is held to some.
    fn is_well(&self) -> bool {
        let same = self.rows.iter().all(|row| row.same_bits);
        same && !checks::has_missed(self.checks.iter())
    }

    fn write_text(&self, out: &mut impl Write) -> Result<(), HarnessError> {
        let Machine { processor, cpus, kernel, load, .. } = &self.machine;
        writeln!(
            out,
            "{processor}, {cpus} CPUs, Linux {kernel}, load at the start {load:.2}. Medians of \
             alternating pairs. The first ratio is from the cache to in full, the second to a whole start: \
             reading the model's file, importing it, and in full."
        )?;
        let words = ["model", "where"].map(Column::text);
        let numbers = [
            "model file",
            "data file",
            "in full",
            "from cache",
            "ratio",
            "import",
            "to a start",
            "bits",
        ];
        let mut table = Table::new([&words[..], &numbers.map(Column::number)].concat());
        for row in &self.rows {
            let kib = |bytes: u64| format!("{} KiB", bytes.div_ceil(1024));
            table.add([
                row.model.clone(),
                row.place.to_owned(),
                kib(row.model_bytes),
                kib(row.data_bytes),
                time(row.full_ns),
                time(row.from_cache_ns),
                row.ratio.text(2),
                time(row.import_ns),
                row.start_ratio.text(2),
                if row.same_bits { "same" } else { "DIFFERENT" }.to_owned(),
            ]);
        }
        writeln!(out, "{}", table.text())?;
        let held = checks::table(self.checks.iter().map(|check| ("all", check)));
        if !held.is_empty() {
            writeln!(out, "{}", held.text())?;
        }
        Ok(())
    }
}

/// The ratios that are judged: through a service the slowest of all models and of the largest, in one process the
/// slowest start.
fn ratios(rows: &[Row]) -> Vec<Check> {
    let of = |place| rows.iter().filter(move |row| row.place == place);
    let slowest = |ratios: &mut dyn Iterator<Item = f64>| ratios.max_by(f64::total_cmp);
    let mut served: Vec<&Row> = of(SERVICE).collect();
    served.sort_by_key(|row| std::cmp::Reverse(row.model_bytes + row.data_bytes));
    let largest = &served[..served.len().min(LARGEST)];
    let all = slowest(&mut served.iter().map(|row| row.ratio.median));
    let largest = slowest(&mut largest.iter().map(|row| row.ratio.median));
    let start = slowest(&mut of(IN_PROCESS).map(|row| row.start_ratio.median));
    vec![
        Check::new("from files : in full, through a service, the slowest model", all),
        Check::new("the same of the three largest models", largest),
        Check::new(
            "from files : from the model's own file, in one process, the slowest model",
            start,
        ),
    ]
}

/// Reads bounds for them.
fn bounds(path: &Path) -> Result<Bounds, HarnessError> {
    let ratios: Vec<String> = ratios(&[]).into_iter().map(|check| check.what).collect();
    Bounds::read(path, &ratios)
}
