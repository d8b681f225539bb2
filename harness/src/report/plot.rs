//! Drawings of a run, each a piece of HTML: the lines and axes as SVG, their names below. Colours are variables of the
//! page, which has them for light and dark.

use std::fmt::Write;

use super::escape::escape;
use super::ticks::{self, Tick};

/// A line in a drawing.
#[derive(Debug, Clone)]
pub struct Line {
    /// Its name below the axes; without one it is part of the line before it that has its colour.
    pub name: String,
    /// Which of the colours, counted from 0; the same number is the same colour in every drawing.
    pub colour: usize,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

/// What the values of an x axis are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Shares as [`nines`](super::nines) has them: p50, p90, p99.
    Shares,
    /// Numbers.
    Numbers,
    /// Logarithms of numbers, to the base of ten.
    Decades,
}

/// What the values of a y axis are, which is logarithmic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heights {
    /// Times in nanoseconds.
    Times,
    /// Numbers per second.
    Rates,
}

/// What a drawing shows.
#[derive(Debug)]
pub struct Drawing<'d> {
    /// Above it.
    pub title: &'d str,
    /// What the x axis is, with its unit.
    pub x: &'d str,
    /// What the values on it are.
    pub x_scale: Scale,
    /// What the y axis is.
    pub y: &'d str,
    /// What the values on it are.
    pub y_scale: Heights,
    /// Its lines.
    pub lines: Vec<Line>,
}

/// Colours that a page has.
pub(super) const COLOURS: usize = 10;

/// Width and height.
const SIZE: (f64, f64) = (640.0, 330.0);
/// Where the axes are: from the left, from above, and their ends.
const LEFT: f64 = 70.0;
const TOP: f64 = 12.0;
const RIGHT: f64 = SIZE.0 - 14.0;
const BOTTOM: f64 = SIZE.1 - 46.0;

/// From values to places.
struct Axes {
    x: (f64, f64),
    /// Logarithms of the least and the greatest time.
    y: (f64, f64),
}

impl Axes {
    /// `None` without points.
    fn of(drawing: &Drawing<'_>) -> Option<Axes> {
        let points = || drawing.lines.iter().flat_map(|line| &line.points);
        let x = range(points().map(|point| point.0))?;
        let y = range(points().map(|point| point.1.max(1.0).ln()))?;
        // Some room above and below, of a line without height too.
        let room = ((y.1 - y.0) * 0.06).max(0.05);
        let x = if x.1 > x.0 { x } else { (x.0 - 1.0, x.1 + 1.0) };
        Some(Axes { x, y: (y.0 - room, y.1 + room) })
    }

    fn across(&self, value: f64) -> f64 {
        LEFT + (value - self.x.0) / (self.x.1 - self.x.0) * (RIGHT - LEFT)
    }

    fn down(&self, ns: f64) -> f64 {
        BOTTOM - (ns.max(1.0).ln() - self.y.0) / (self.y.1 - self.y.0) * (BOTTOM - TOP)
    }
}

/// One drawing; nothing without points. The y axis is logarithmic: times range over six decades.
pub(super) fn draw(drawing: &Drawing<'_>) -> String {
    let Some(axes) = Axes::of(drawing) else { return String::new() };
    let (title, mut html) = (escape(drawing.title), String::new());
    let _ = write!(
        html,
        "<figure><figcaption>{title}</figcaption><div class=\"wide\"><svg role=\"img\" \
         aria-label=\"{title}\" viewBox=\"0 0 {} {}\">",
        SIZE.0, SIZE.1
    );
    grid(&mut html, drawing, &axes);
    for line in &drawing.lines {
        polyline(&mut html, line, &axes);
    }
    html += "</svg></div><ul class=\"legend\">";
    let is_named = |line: &&Line| !line.points.is_empty() && !line.name.is_empty();
    for line in drawing.lines.iter().filter(is_named) {
        let _ = write!(html, "<li style=\"--c:var(--c{})\">{}", colour(line), escape(&line.name));
    }
    html += "</ul></figure>";
    html
}

/// Lines at the ticks, the names of these and of the axes.
fn grid(html: &mut String, drawing: &Drawing<'_>, axes: &Axes) {
    let of_x = match drawing.x_scale {
        Scale::Shares => ticks::shares(axes.x),
        Scale::Numbers => ticks::numbers(axes.x),
        Scale::Decades => ticks::decades(axes.x),
    };
    for Tick { at, name } in of_x {
        let at = axes.across(at);
        let _ = write!(
            html,
            "<path class=\"grid\" d=\"M{at:.1} {TOP}V{BOTTOM}\"/>\
             <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{name}</text>",
            BOTTOM + 16.0
        );
    }
    let heights = (axes.y.0.exp(), axes.y.1.exp());
    let of_y = match drawing.y_scale {
        Heights::Times => ticks::times(heights),
        Heights::Rates => ticks::rates(heights),
    };
    for Tick { at, name } in of_y {
        let at = axes.down(at);
        let _ = write!(
            html,
            "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{RIGHT}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>",
            LEFT - 6.0,
            at + 4.0
        );
    }
    let (middle, centre) = (f64::midpoint(LEFT, RIGHT), f64::midpoint(TOP, BOTTOM));
    let _ = write!(
        html,
        "<path class=\"axis\" d=\"M{LEFT} {TOP}V{BOTTOM}H{RIGHT}\"/>\
         <text class=\"name\" x=\"{middle}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
         <text class=\"name\" transform=\"translate(13 {centre}) rotate(-90)\" \
         text-anchor=\"middle\">{}</text>",
        SIZE.1 - 8.0,
        escape(drawing.x),
        escape(drawing.y)
    );
}

fn polyline(html: &mut String, line: &Line, axes: &Axes) {
    let places: Vec<(f64, f64)> =
        line.points.iter().map(|point| (axes.across(point.0), axes.down(point.1))).collect();
    let points: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let _ = write!(
        html,
        "<g style=\"--c:var(--c{})\"><polyline class=\"line\" points=\"{}\"/>",
        colour(line),
        points.join(" ")
    );
    for (x, y) in places {
        let _ = write!(html, "<circle class=\"point\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.2\"/>");
    }
    *html += "</g>";
}

fn colour(line: &Line) -> usize {
    line.colour % COLOURS
}

fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let values = values.filter(|value| value.is_finite());
    let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
    (low <= high).then_some((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawing(points: Vec<(f64, f64)>) -> Drawing<'static> {
        let lines = vec![Line { name: "<a>".to_owned(), colour: 12, points }];
        let (title, x, y) = ("a & b", "share", "time");
        Drawing { title, x, x_scale: Scale::Shares, y, y_scale: Heights::Times, lines }
    }

    #[test]
    fn points_lie_within_the_axes_and_names_are_escaped() {
        let html = draw(&drawing(vec![(0.0, 100.0), (1.0, 5_000.0), (2.0, 2e6)]));
        let points = html.split_once("points=\"").unwrap().1.split_once('"').unwrap().0;
        let points: Vec<Vec<f64>> = points
            .split(' ')
            .map(|point| point.split(',').map(|number| number.parse().unwrap()).collect())
            .collect();
        assert_eq!(points.len(), 3);
        assert!(points.iter().all(|p| (LEFT..=RIGHT).contains(&p[0])), "{points:?}");
        assert!(points.iter().all(|p| (TOP..=BOTTOM).contains(&p[1])), "{points:?}");
        assert!(points[0][0] < points[2][0] && points[0][1] > points[2][1], "up is more");
        assert!(html.contains("a &amp; b") && html.contains("&lt;a&gt;"), "{html}");
        assert!(html.contains("var(--c2)"), "there are ten colours: {html}");
        for tick in [">p50<", ">p90<", ">p99<", ">100 us<"] {
            assert!(html.contains(tick), "{tick}: {html}");
        }
    }

    #[test]
    fn lines_without_a_name_are_drawn_and_not_named() {
        let mut drawing = drawing(vec![(0.0, 100.0)]);
        drawing.lines.push(Line { name: String::new(), colour: 3, points: vec![(1.0, 200.0)] });
        let html = draw(&drawing);
        assert_eq!(
            (html.matches("<circle").count(), html.matches("<li").count()),
            (2, 1),
            "{html}"
        );
    }

    #[test]
    fn nothing_is_drawn_of_nothing_and_one_point_has_its_axes() {
        assert_eq!(draw(&drawing(Vec::new())), "");
        let html = draw(&drawing(vec![(0.0, 100.0)]));
        assert!(html.contains("<svg") && !html.contains("NaN") && !html.contains("inf"), "{html}");
    }
}
