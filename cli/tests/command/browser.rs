//! `--view` and pages of figures in a browser without a screen, which is told what to do through its two pipes (`--remote-debugging-pipe`: messages
//! as JSON, each with a 0 behind it).
//!
//! `BURST_BROWSER` says which browser of Chromium's kind; `cli/tests/browser/setup FOLDER` makes one.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};

use burst_testing::{Missing, shared};
use serde_json::{Value, json};

use crate::support::{HANG, wait_until};
use crate::view::Viewed;

burst_testing::tests![
    frames_advance_in_a_browser_which_asks_nobody_else(&browser()?),
    without_the_token_a_browser_shows_nothing(&browser()?),
    boxes_are_drawn_in_a_browser(&browser()?, &shared("")?),
    a_page_of_figures_is_drawn_light_and_dark_and_on_a_phone(&browser()?),
];

fn browser() -> Result<PathBuf, Missing> {
    let browser = std::env::var_os("BURST_BROWSER").map(PathBuf::from);
    browser.ok_or_else(|| {
        let how = "cli/tests/browser/setup FOLDER, then BURST_BROWSER=FOLDER/chromium";
        Missing::new(format!("a browser: {how}"))
    })
}

/// A browser with one page.
struct Browser {
    child: Arc<Mutex<Child>>,
    /// While this is there the test is under way.
    _under_way: Sender<()>,
    to: File,
    from: BufReader<File>,
    /// What it told that nobody has looked at yet.
    told: VecDeque<Value>,
    session: Value,
    calls: u64,
    _folder: tempfile::TempDir,
}

impl Browser {
    fn start(program: &Path) -> Browser {
        let folder = tempfile::tempdir().unwrap();
        let (to, from) = (folder.path().join("to"), folder.path().join("from"));
        for pipe in [&to, &from] {
            let made = Command::new("mkfifo").arg(pipe).status().unwrap();
            assert!(made.success());
        }
        // Its pipes are its descriptors 3 and 4. Each opens when both of its ends do.
        let start = "program=$1; shift; exec \"$program\" \"$@\" 3<\"$TO\" 4>\"$FROM\"";
        let mut command = Command::new("sh");
        command.args(["-c", start, "sh"]).arg(program).args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--remote-debugging-pipe",
            "about:blank",
        ]);
        command.arg(format!("--user-data-dir={}", folder.path().join("profile").display()));
        command.env("TO", &to).env("FROM", &from);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = Arc::new(Mutex::new(command.spawn().unwrap()));
        let under_way = end_if_it_hangs(&child);
        let to = File::options().write(true).open(to).unwrap();
        let from = BufReader::new(File::open(from).unwrap());
        let told = VecDeque::new();
        let mut browser = Browser {
            child,
            _under_way: under_way,
            to,
            from,
            told,
            session: Value::Null,
            calls: 0,
            _folder: folder,
        };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        browser.session = browser.call("Target.attachToTarget", &attach)["sessionId"].clone();
        for domain in ["Network", "Runtime", "Log", "Page"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        browser
    }

    /// Has it do something, and gives what came of it.
    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": params });
        if self.session.is_string() {
            message["sessionId"] = self.session.clone();
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let message = self.read();
            if message["id"] == self.calls {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
            self.told.push_back(message);
        }
    }

    fn read(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes).unwrap();
        assert_eq!(bytes.pop(), Some(0), "the browser is gone");
        serde_json::from_slice(&bytes).unwrap()
    }

    fn open(&mut self, url: &str) {
        self.call("Page.navigate", &json!({ "url": url }));
    }

    /// What an expression comes to in the page.
    fn value(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true });
        let result = self.call("Runtime.evaluate", &params);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// The number of the frame that is shown, as the page says it; 0 before the first one.
    fn frame(&mut self) -> u64 {
        let state = self.value("document.getElementById('state')?.textContent ?? ''");
        let words = state.as_str().unwrap();
        let number = words.strip_prefix("frame ").and_then(|rest| rest.split(' ').next());
        number.map_or(0, |number| number.parse().unwrap())
    }

    /// Everything that it told by now, of this kind.
    fn events(&self, method: &str) -> Vec<&Value> {
        let is_it = |event: &&Value| event["method"] == method;
        self.told.iter().filter(is_it).map(|event| &event["params"]).collect()
    }

    /// Asserts that the page asked nobody but its own server, and that nothing in it failed.
    fn assert_clean(&self, url: &str) {
        let requests = self.events("Network.requestWillBeSent");
        assert!(requests.len() > 3, "the page, its script, its style, frames: {requests:?}");
        for request in requests {
            let asked = request["request"]["url"].as_str().unwrap();
            assert!(asked.starts_with(url) || asked.starts_with("data:"), "{asked}");
        }
        let faults = self.events("Runtime.exceptionThrown");
        assert!(faults.is_empty(), "{faults:?}");
        let logged = self.events("Log.entryAdded");
        assert!(logged.is_empty(), "{logged:?}");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let mut child = self.child.lock().unwrap();
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Ends a browser that does not answer, so that whoever reads from it fails.
fn end_if_it_hangs(child: &Arc<Mutex<Child>>) -> Sender<()> {
    let (under_way, ended) = channel();
    let child = Arc::clone(child);
    std::thread::spawn(move || {
        if ended.recv_timeout(3 * HANG) == Err(RecvTimeoutError::Timeout) {
            let _ = child.lock().unwrap().kill();
        }
    });
    under_way
}

fn frames_advance_in_a_browser_which_asks_nobody_else(program: &Path) {
    let viewed = Viewed::start(&["--json", "--frames", "100000000"], Stdio::null());
    let mut browser = Browser::start(program);
    browser.open(&viewed.url);
    let mut last = 0;
    for _ in 0..3 {
        let before = last;
        wait_until("the next frame", || {
            last = browser.frame();
            last > before
        });
    }
    assert_eq!(browser.value("document.getElementById('picture').width"), 160);
    let found = browser.value("document.getElementById('found').children.length");
    assert_eq!(found, 3, "three classes are named");
    let pixels = "Math.max(...document.getElementById('picture').getContext('2d')\
                  .getImageData(0, 0, 160, 120).data.filter((_, at) => at % 4 != 3))";
    assert!(browser.value(pixels).as_u64().unwrap() > 100, "something is to be seen");
    browser.assert_clean(&viewed.url);
}

fn without_the_token_a_browser_shows_nothing(program: &Path) {
    let viewed = Viewed::start(&["--json", "--frames", "100000000"], Stdio::null());
    let mut browser = Browser::start(program);
    let root: String = viewed.url.split_inclusive('/').take(3).collect();
    for url in [root.clone(), format!("{root}{}/", "0".repeat(32))] {
        browser.open(&url);
        wait_until("its answer", || {
            browser.value("1"); // events come between answers
            let got = browser.events("Network.responseReceived");
            got.iter().any(|got| got["response"]["url"] == url && got["response"]["status"] == 404)
        });
        let seen = browser.value("document.querySelectorAll('canvas, script, li').length");
        assert_eq!(seen, 0, "{url}");
    }
}

/// What the browser has in its canvas is the picture that is saved with the boxes drawn in.
fn boxes_are_drawn_in_a_browser(program: &Path, root: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let (saved, source) = (folder.path().join("saved"), root.join("inputs/images/dogs.jpg"));
    let model = root.join("models/ssd_mobilenet_v1_coco_quant.tflite");
    let [saved_text, source_text, model_text] =
        [&saved, &source, &model].map(|path| path.to_str().unwrap().to_owned());
    let base = ["--source", source_text.as_str(), "--model", model_text.as_str()];
    let more = ["--frames", "1", "--save-frames", &saved_text, "--json"];
    let output = crate::support::run(&[&["stream"], &base[..], &more].concat());
    let report = crate::support::json(&output);
    assert!(!report["results"][0]["boxes"].as_array().unwrap().is_empty(), "{report}");
    let drawn = burst_pictures::read(&saved.join("frame-000001.png")).unwrap();
    let plain = burst_pictures::read(&source).unwrap();

    let args = [&base[..], &["--frames", "100000000", "--json"]].concat();
    let viewed = Viewed::start(&args, Stdio::null());
    let mut browser = Browser::start(program);
    browser.open(&viewed.url);
    wait_until("a frame", || browser.frame() > 0);
    let size =
        "[document.getElementById('picture').width, document.getElementById('picture').height]";
    assert_eq!(browser.value(size), json!([drawn.width, drawn.height]));
    let all = "(() => { const picture = document.getElementById('picture'); return Array.from(\
               picture.getContext('2d').getImageData(0, 0, picture.width, picture.height).data); })()";
    let shown: Vec<i32> =
        serde_json::from_value(browser.value(all)).expect("red, green, blue, opacity");
    let (mut of_boxes, mut right) = (0, 0);
    for (at, pixel) in shown.chunks(4).enumerate() {
        let far = |picture: &burst_pictures::Picture| -> i32 {
            let bytes = &picture.rgb[at * 3..at * 3 + 3];
            bytes.iter().zip(pixel).map(|(byte, shown)| (i32::from(*byte) - shown).abs()).sum()
        };
        let difference: i32 = (0..3)
            .map(|of| {
                let [drawn, plain] = [&drawn, &plain].map(|one| i32::from(one.rgb[at * 3 + of]));
                (drawn - plain).abs()
            })
            .sum();
        if difference > 200 {
            of_boxes += 1;
            right += usize::from(far(&drawn) < far(&plain));
        }
    }
    assert!(of_boxes > 300, "boxes have edges: {of_boxes} pixels");
    assert!(right * 10 > of_boxes * 9, "{right} of {of_boxes} pixels of boxes are as drawn");
    browser.assert_clean(&viewed.url);
}

/// What is asked of a page of figures in each look: how many drawings there are, how many show lines with a size, the
/// colours of text and paper, and by how much the page is wider than the window.
const LOOK: &str = "(() => {
    const drawings = [...document.querySelectorAll('svg')];
    const lines = (svg) => [...svg.querySelectorAll('polyline')];
    const is_drawn = (svg) => lines(svg).length > 0 && lines(svg).every((line) =>
        line.getBoundingClientRect().width > 0 && getComputedStyle(line).stroke.startsWith('rgb'));
    const style = getComputedStyle(document.body);
    const root = document.documentElement;
    return { drawings: drawings.length, drawn: drawings.filter(is_drawn).length, ink: style.color,
        paper: style.backgroundColor, beyond: root.scrollWidth - window.innerWidth };
})()";

/// How bright a colour is that the browser calls `rgb(1, 2, 3)`, from 0 to 255.
fn brightness(colour: &Value) -> u32 {
    let numbers = colour.as_str().unwrap().trim_start_matches("rgb(").trim_end_matches(')');
    numbers.split(", ").map(|number| number.parse::<u32>().unwrap()).sum::<u32>() / 3
}

fn a_page_of_figures_is_drawn_light_and_dark_and_on_a_phone(program: &Path) {
    let data = crate::mlts::data(3);
    let page = data.path().join("page.html");
    let own = crate::support::repository().join("models/shapes.tflite");
    let [own, folder, file] =
        [own.as_path(), data.path(), page.as_path()].map(|path| path.to_str().unwrap());
    let models = ["bench", "mlts", own, "--data", folder, "--windows", "1", "--report", file];
    let output = crate::support::run(&[&models[..], &["--json"]].concat());
    assert!(output.status.success(), "{output:?}");
    let model = &crate::support::json(&output)["models"][0];
    let mut browser = Browser::start(program);
    let url = format!("file://{file}");
    browser.open(&url);
    wait_until("the page", || browser.value("document.readyState") == "complete");
    for (scheme, width) in [("light", 1200), ("dark", 1200), ("light", 360), ("dark", 360)] {
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        browser.call("Emulation.setEmulatedMedia", &media);
        let size =
            json!({ "width": width, "height": 780, "deviceScaleFactor": 1, "mobile": width < 500 });
        browser.call("Emulation.setDeviceMetricsOverride", &size);
        let look = browser.value(LOOK);
        assert_eq!((&look["drawings"], &look["drawn"]), (&1.into(), &1.into()), "{scheme}: {look}");
        let (ink, paper) = (brightness(&look["ink"]), brightness(&look["paper"]));
        assert_eq!(ink < paper, scheme == "light", "{scheme}: {look}");
        assert!(ink.abs_diff(paper) > 150, "text is told from paper: {scheme}: {look}");
        assert!(look["beyond"].as_i64().unwrap() <= 0, "{width} pixels are enough: {look}");
    }
    let shown = browser.value("document.body.innerText");
    let shown = shown.as_str().unwrap();
    let paths = model["paths"].as_array().unwrap().iter().map(|row| row["path"].as_str().unwrap());
    for part in paths.chain(["shapes", "p50", "burst bench mlts", "UTC", "zz.jpg", "Left out"]) {
        assert!(shown.contains(part), "no {part:?} on the page: {shown}");
    }
    let asked = browser.events("Network.requestWillBeSent");
    let others = asked.iter().filter(|asked| asked["request"]["url"] != "about:blank");
    let others: Vec<&Value> = others.map(|asked| &asked["request"]["url"]).collect();
    assert_eq!(others, [&json!(url)], "the page asks for nothing but itself");
    let faults = [browser.events("Runtime.exceptionThrown"), browser.events("Log.entryAdded")];
    assert!(faults.concat().is_empty(), "{faults:?}");
}
