//! What frames came to: said at once as text, or kept for the JSON object.

use std::io::Write;

use anyhow::Result;
use serde::Serialize;

use super::answer::{Answer, Class, Detection, Share, Stretch};

/// Most results that are kept for the JSON object; the rest is counted.
const MAX_KEPT: usize = 100_000;
/// Most classes of a segmentation in a line of text.
const MOST_SHARES: usize = 8;

/// The result of one frame.
#[derive(Debug, Serialize)]
pub(crate) struct FrameResult {
    pub(crate) frame: u64,
    pub(crate) source: String,
    /// When the frame begins, in sound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at_seconds: Option<f64>,
    /// How much sound it is.
    #[serde(skip)]
    pub(crate) span_seconds: Option<f64>,
    #[serde(flatten)]
    pub(crate) answer: Answer,
}

/// Where results go.
#[derive(Debug)]
pub(crate) struct Results {
    is_text: bool,
    kept: Vec<FrameResult>,
    pub(crate) left_out: u64,
}

impl Results {
    pub(crate) fn new(is_text: bool) -> Self {
        Results { is_text, kept: Vec::new(), left_out: 0 }
    }

    /// Says or keeps a result.
    pub(crate) fn add(&mut self, result: FrameResult) -> Result<()> {
        if self.is_text {
            result.write_text(&mut std::io::stdout().lock())?;
        } else if self.kept.len() < MAX_KEPT {
            self.kept.push(result);
        } else {
            self.left_out += 1;
        }
        Ok(())
    }

    pub(crate) fn into_kept(self) -> Vec<FrameResult> {
        self.kept
    }
}

impl FrameResult {
    fn write_text(&self, out: &mut impl Write) -> Result<()> {
        let heading = match self.at_seconds {
            Some(at) => format!("{at:8.2} s"),
            None => format!("frame {} ({})", self.frame, self.source),
        };
        match &self.answer {
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

fn write_box(found: &Detection, out: &mut impl Write) -> Result<()> {
    let [left, top, right, bottom] = found.edges;
    writeln!(
        out,
        "  {:8.5}  {:5}  {}  left {left:.3} top {top:.3} right {right:.3} bottom {bottom:.3}",
        found.score,
        found.index,
        found.name()
    )?;
    Ok(())
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
        let result = FrameResult { frame: 3, source, at_seconds, span_seconds, answer };
        let mut out = Vec::new();
        result.write_text(&mut out).unwrap();
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
    fn json_has_the_answer_beside_the_frame() {
        let answer = Answer::Top { top: vec![class(1, "cat", 0.75)] };
        let source = "x".to_owned();
        let result = FrameResult { frame: 0, source, at_seconds: None, span_seconds: None, answer };
        assert_eq!(
            serde_json::to_string(&result).unwrap(),
            r#"{"frame":0,"source":"x","top":[{"index":1,"label":"cat","score":0.75}]}"#
        );
    }
}
