//! What the camera does, line by line:
//!
//! ```text
//! device /dev/video7                 its name
//! log FILE                           where it writes what was asked of it
//! refuse REQUEST ERRNO               `open` or a request such as `S_FMT` fails
//! capabilities NUMBER                of this file of the device
//! format FOURCC WIDTHxHEIGHT STRIDE RATE,RATE
//! insist FOURCC WIDTHxHEIGHT STRIDE  what it answers to any format that is asked for
//! buffers COUNT                      at most so many
//! frame FILE [WORD...]               the next frame, ready when somebody polls
//! unplug                             it is gone
//! ```
//!
//! Words behind a frame: `error` (marked as damaged), `eio` (the request fails instead), `with-next` (the next one is ready at the
//! same time), `used=N` (so many bytes of it), `gap=N` (so many were lost before it), `age=MS` (how old its time stamp is),
//! `time=back`, `time=future`, `time=unset`, `time=other`. At the end of the script no more frames come.

use std::path::PathBuf;

/// What the camera is and does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Script {
    pub(crate) device: String,
    pub(crate) log: Option<PathBuf>,
    pub(crate) refusals: Vec<(String, i32)>,
    pub(crate) capabilities: Option<u32>,
    pub(crate) formats: Vec<Format>,
    pub(crate) insisted: Option<Format>,
    pub(crate) buffers: Option<u32>,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug, Clone)]
pub(crate) struct Format {
    pub(crate) code: u32,
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) stride: u32,
    pub(crate) rates: Vec<u32>,
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Frame(Frame),
    Unplug,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Frame {
    pub(crate) file: PathBuf,
    pub(crate) is_damaged: bool,
    pub(crate) is_eio: bool,
    pub(crate) with_next: bool,
    pub(crate) used: Option<u32>,
    pub(crate) gap: u32,
    pub(crate) age_ms: u64,
    pub(crate) time: Option<String>,
}

/// The script of this process, where it names a device with this path.
pub(crate) fn of_process(path: &str) -> Option<Script> {
    // Nothing is opened before this is known: reading the script opens something again.
    if !path.starts_with("/dev/video") {
        return None;
    }
    let script = std::env::var_os("BURST_STAND_IN")?;
    let text = std::fs::read_to_string(&script).expect("a script");
    let script = parse(&text);
    (script.device == path).then_some(script)
}

fn parse(text: &str) -> Script {
    let mut script = Script::default();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [] => {}
            ["device", path] => script.device = path.into(),
            ["log", file] => script.log = Some(file.into()),
            ["refuse", request, errno] => script.refusals.push((request.into(), code(errno))),
            ["capabilities", number] => {
                let hex = number.strip_prefix("0x").expect("a hexadecimal number");
                script.capabilities = Some(u32::from_str_radix(hex, 16).expect("32 bits"));
            }
            ["format", ref rest @ ..] => script.formats.push(format(rest)),
            ["insist", ref rest @ ..] => script.insisted = Some(format(rest)),
            ["buffers", count] => script.buffers = Some(number(count)),
            ["frame", file, ref rest @ ..] => script.steps.push(Step::Frame(frame(file, rest))),
            ["unplug"] => script.steps.push(Step::Unplug),
            _ => panic!("a line of the script that means nothing: {line}"),
        }
    }
    script
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("{text}: no number"))
}

fn code(name: &str) -> i32 {
    match name {
        "EACCES" => libc::EACCES,
        "EBUSY" => libc::EBUSY,
        "EIO" => libc::EIO,
        "ENODEV" => libc::ENODEV,
        _ => panic!("{name}: not an error that is known here"),
    }
}

fn format(words: &[&str]) -> Format {
    let [code, size, stride, rest @ ..] = words else { panic!("{words:?}: no format") };
    let letters: [u8; 4] = code.as_bytes().try_into().expect("four letters");
    let (width, height) = size.split_once('x').expect("WIDTHxHEIGHT");
    let rates = rest.first().map(|rates| rates.split(',').map(number).collect());
    Format {
        code: u32::from_le_bytes(letters),
        width: number(width),
        height: number(height),
        stride: number(stride),
        rates: rates.unwrap_or_default(),
    }
}

fn frame(file: &str, words: &[&str]) -> Frame {
    let mut frame = Frame { file: file.into(), ..Frame::default() };
    for word in words {
        match word.split_once('=') {
            None if *word == "error" => frame.is_damaged = true,
            None if *word == "eio" => frame.is_eio = true,
            None if *word == "with-next" => frame.with_next = true,
            Some(("used", bytes)) => frame.used = Some(number(bytes)),
            Some(("gap", frames)) => frame.gap = number(frames),
            Some(("age", millis)) => frame.age_ms = number(millis),
            Some(("time", kind)) => frame.time = Some(kind.into()),
            _ => panic!("{word}: no word for a frame"),
        }
    }
    frame
}
