//! What frames came to, as text and as JSON.

use std::io::Write;

use burst_tasks::{Answer, Class, Detection, Share, Stretch};
use serde::{Serialize, Serializer};

/// Most classes of a segmentation in a line of text.
const MOST_SHARES: usize = 8;

/// The result of one frame.
#[derive(Debug)]
pub(crate) struct FrameResult {
    /// Its place in the source, from 1.
    pub(crate) frame: u64,
    pub(crate) source: String,
    /// When the frame begins, in sound.
    pub(crate) at_seconds: Option<f64>,
    /// How much sound it is.
    pub(crate) span_seconds: Option<f64>,
    /// `None` where the execution failed, or nothing is known of the outputs.
    pub(crate) answer: Option<Answer>,
}

/// The keys of a result in JSON, which are always there.
#[derive(Debug, Default, Serialize)]
struct Keys<'a> {
    frame: u64,
    source: &'a str,
    at_seconds: Option<f64>,
    top: Option<&'a [Class]>,
    steps: Option<usize>,
    stretches: Option<&'a [Stretch]>,
    boxes: Option<&'a [Detection]>,
    classes: Option<&'a [Share]>,
    width: Option<u32>,
    height: Option<u32>,
    count: Option<usize>,
    least: Option<f32>,
    greatest: Option<f32>,
}

impl Serialize for FrameResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.keys().serialize(serializer)
    }
}

/// A line of `--json-lines`: a result, how its execution ended, and how long it took.
#[derive(Debug, Serialize)]
pub(crate) struct FrameLine<'a> {
    #[serde(flatten)]
    pub(crate) result: &'a FrameResult,
    /// The status of the HAL, NONE where all went well.
    pub(crate) status: &'a str,
    pub(crate) latency_us: Option<f64>,
    pub(crate) driver_us: Option<f64>,
}

impl FrameLine<'_> {
    pub(crate) fn write(&self, to: &mut impl Write) -> anyhow::Result<()> {
        writeln!(to, "{}", serde_json::to_string(self)?)?;
        Ok(())
    }
}

impl FrameResult {
    fn keys(&self) -> Keys<'_> {
        let FrameResult { frame, source, at_seconds, .. } = self;
        let keys = Keys { frame: *frame, source, at_seconds: *at_seconds, ..Keys::default() };
        match &self.answer {
            None => keys,
            Some(Answer::Top { top }) => Keys { top: Some(top), ..keys },
            Some(Answer::Steps { steps, stretches }) => {
                Keys { steps: Some(*steps), stretches: Some(stretches), ..keys }
            }
            Some(Answer::Boxes { boxes }) => Keys { boxes: Some(boxes), ..keys },
            Some(Answer::Shares { classes }) => Keys { classes: Some(classes), ..keys },
            Some(Answer::Picture { width, height }) => {
                Keys { width: Some(*width), height: Some(*height), ..keys }
            }
            Some(Answer::Values { count, least, greatest }) => {
                Keys { count: Some(*count), least: Some(*least), greatest: Some(*greatest), ..keys }
            }
        }
    }

    /// Says it; of classes the best in one line where it is to be `brief`.
    pub(crate) fn write_text(&self, brief: bool, out: &mut impl Write) -> std::io::Result<()> {
        let heading = match self.at_seconds {
            Some(at) => format!("{at:8.2} s"),
            None => format!("frame {} ({})", self.frame, self.source),
        };
        let Some(answer) = &self.answer else { return Ok(()) };
        match answer {
            Answer::Top { top } if brief && self.at_seconds.is_none() => {
                writeln!(out, "{heading}: {}", joined(top, |c| scored(&c.name(), c.score)))?;
            }
            Answer::Top { top } if self.at_seconds.is_some() => {
                writeln!(out, "{heading}  {}", joined(top, |c| scored(&c.name(), c.score)))?;
            }
            Answer::Top { top } => {
                writeln!(out, "{heading}")?;
                for Class { score, index, label } in top {
                    writeln!(out, "  {score:8.5}  {index:5}  {label}")?;
                }
            }
            Answer::Steps { steps, stretches } => {
                let when = |stretch: &Stretch| self.step(stretch.step, *steps);
                let said = |s: &Stretch| {
                    format!("{}: {}", when(s), scored(&s.class.name(), s.class.score))
                };
                writeln!(out, "{heading}  {}", joined(stretches, said))?;
            }
            Answer::Boxes { boxes } => {
                writeln!(out, "{heading}: {} found", boxes.len())?;
                for found in boxes {
                    write_box(found, out)?;
                }
            }
            Answer::Shares { classes } => {
                let most = &classes[..classes.len().min(MOST_SHARES)];
                let said = |s: &Share| format!("{} {:.1} %", s.name(), s.share * 100.0);
                writeln!(out, "{heading}: {}", joined(most, said))?;
            }
            Answer::Picture { width, height } => {
                writeln!(out, "{heading}: {width} x {height} pixels")?;
            }
            Answer::Values { count, least, greatest } => {
                writeln!(out, "{heading}: {count} values from {least} to {greatest}")?;
            }
        }
        Ok(())
    }

    /// When a step begins: in seconds of the sound, else its number.
    fn step(&self, step: usize, steps: usize) -> String {
        let Some((at, span)) = self.at_seconds.zip(self.span_seconds) else {
            return format!("{step}");
        };
        #[expect(clippy::cast_precision_loss, reason = "counts of steps")]
        let part = step as f64 / steps as f64;
        format!("{:.2}", at + span * part)
    }
}

fn write_box(found: &Detection, out: &mut impl Write) -> std::io::Result<()> {
    let [left, top, right, bottom] = found.edges;
    writeln!(
        out,
        "  {:8.5}  {:5}  {}  left {left:.3} top {top:.3} right {right:.3} bottom {bottom:.3}",
        found.score,
        found.index,
        found.name()
    )
}

fn scored(name: &str, score: f32) -> String {
    format!("{name} {score:.2}")
}

fn joined<T>(all: &[T], each: impl Fn(&T) -> String) -> String {
    all.iter().map(each).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(index: usize, label: &str, score: f32) -> Class {
        Class { index, label: label.into(), score }
    }

    fn text(at_seconds: Option<f64>, answer: Answer) -> String {
        let span_seconds = at_seconds.map(|_| 0.4);
        let source = "x".to_owned();
        let answer = Some(answer);
        let result = FrameResult { frame: 3, source, at_seconds, span_seconds, answer };
        let mut out = Vec::new();
        result.write_text(false, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_kind_of_answer_is_said_in_its_way() {
        let top = || vec![class(1, "cat", 0.75), class(2, "", 0.125)];
        assert_eq!(
            text(None, Answer::Top { top: top() }),
            "frame 3 (x)\n   0.75000      1  cat\n   0.12500      2  \n"
        );
        assert_eq!(
            text(Some(1.5), Answer::Top { top: top() }),
            "    1.50 s  cat 0.75, class 2 0.12\n"
        );
        let stretches = || {
            vec![
                Stretch { step: 0, class: class(1, "a", 0.5) },
                Stretch { step: 10, class: class(2, "b", 0.25) },
            ]
        };
        assert_eq!(
            text(Some(1.0), Answer::Steps { steps: 40, stretches: stretches() }),
            "    1.00 s  1.00: a 0.50, 1.10: b 0.25\n"
        );
        assert_eq!(
            text(None, Answer::Steps { steps: 40, stretches: stretches() }),
            "frame 3 (x)  0: a 0.50, 10: b 0.25\n"
        );
        let found =
            Detection { index: 4, label: "dog".into(), score: 0.5, edges: [0.0, 0.25, 0.5, 1.0] };
        assert_eq!(
            text(None, Answer::Boxes { boxes: vec![found] }),
            "frame 3 (x): 1 found\n   0.50000      4  dog  left 0.000 top 0.250 right 0.500 \
             bottom 1.000\n"
        );
        let share = Share { index: 0, label: "ground".into(), share: 0.995 };
        assert_eq!(
            text(None, Answer::Shares { classes: vec![share] }),
            "frame 3 (x): ground 99.5 %\n"
        );
    }

    #[test]
    fn json_has_the_answer_beside_the_frame_and_every_key_whatever_the_answer_is() {
        let source = "x".to_owned();
        let answer = Some(Answer::Top { top: vec![class(1, "cat", 0.75)] });
        let mut result =
            FrameResult { frame: 1, source, at_seconds: None, span_seconds: None, answer };
        let json = |result: &FrameResult| serde_json::to_value(result).unwrap();
        let top = json(&result);
        assert_eq!(top["frame"], 1);
        assert_eq!(top["top"][0]["label"], "cat");
        let keys = |value: &serde_json::Value| -> Vec<String> {
            value.as_object().unwrap().keys().cloned().collect()
        };
        for answer in [
            None,
            Some(Answer::Boxes { boxes: Vec::new() }),
            Some(Answer::Shares { classes: Vec::new() }),
            Some(Answer::Steps { steps: 1, stretches: Vec::new() }),
            Some(Answer::Picture { width: 1, height: 1 }),
            Some(Answer::Values { count: 0, least: f32::INFINITY, greatest: 0.0 }),
        ] {
            result.answer = answer;
            assert_eq!(keys(&json(&result)), keys(&top), "{result:?}");
        }
        let line = FrameLine { result: &result, status: "NONE", latency_us: None, driver_us: None };
        let mut text = Vec::new();
        line.write(&mut text).unwrap();
        let line: serde_json::Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(keys(&line).len(), keys(&top).len() + 3);
    }

    #[test]
    fn the_best_class_of_a_picture_fits_into_a_line() {
        let source = "cat.jpg".to_owned();
        let answer = Some(Answer::Top { top: vec![class(1, "cat", 0.75)] });
        let result = FrameResult { frame: 3, source, at_seconds: None, span_seconds: None, answer };
        let mut out = Vec::new();
        result.write_text(true, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "frame 3 (cat.jpg): cat 0.75\n");
    }
}
