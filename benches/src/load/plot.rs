//! Plots as SVG: lines in panels one above the other, over one x axis. Plain text, so that runs can be compared.

use std::fmt::Write as _;

/// Size of a plot, and of what is around a panel, in pixels.
const WIDTH: f64 = 840.0;
const PANEL: f64 = 260.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 44.0;
const GAP: f64 = 34.0;
const BOTTOM: f64 = 46.0;
/// Told apart by those who see no red or green, too (Okabe and Ito).
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

/// A line.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    /// Its name.
    pub(crate) name: String,
    /// From left to right; what is no number is left out.
    pub(crate) points: Vec<(f64, f64)>,
}

/// Some lines with an axis of their own.
#[derive(Debug, Clone)]
pub(crate) struct Panel {
    /// What is drawn, with its unit.
    pub(crate) label: &'static str,
    /// Whether the axis is logarithmic; a linear one begins at 0.
    pub(crate) is_log: bool,
    /// The lines.
    pub(crate) series: Vec<Series>,
}

/// A whole plot.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    /// Its heading.
    pub(crate) title: String,
    /// What is to the right, with its unit.
    pub(crate) label: &'static str,
    /// Whether the x axis is logarithmic.
    pub(crate) is_log: bool,
    /// From top to bottom.
    pub(crate) panels: Vec<Panel>,
    /// Stretches of the x axis that are marked, each with its name.
    pub(crate) bands: Vec<(f64, f64, String)>,
}

/// From values to pixels.
struct Scale {
    from: f64,
    to: f64,
    is_log: bool,
    /// Pixels of both ends.
    at: (f64, f64),
}

impl Scale {
    fn new(values: impl Iterator<Item = f64>, is_log: bool, from_zero: bool, at: (f64, f64)) -> Self {
        let fits = |value: &f64| value.is_finite() && (!is_log || *value > 0.0);
        let (mut from, mut to) = values
            .filter(fits)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(from, to), value| (from.min(value), to.max(value)));
        if from > to {
            (from, to) = (1.0, 10.0);
        }
        if is_log {
            (from, to) = (10_f64.powf(from.log10().floor()), 10_f64.powf(to.log10().ceil()));
            to = if from < to { to } else { from * 10.0 };
        } else if from_zero {
            (from, to) = (0.0, if to > 0.0 { to * 1.05 } else { 1.0 });
        } else if from == to {
            to = from + 1.0;
        }
        Self { from, to, is_log, at }
    }

    fn place(&self, value: f64) -> f64 {
        let share = if self.is_log {
            (value / self.from).log10() / (self.to / self.from).log10()
        } else {
            (value - self.from) / (self.to - self.from)
        };
        self.at.0 + share * (self.at.1 - self.at.0)
    }

    fn ticks(&self) -> Vec<f64> {
        if self.is_log {
            let decades = (self.to / self.from).log10().round() as i32;
            return (0..=decades).map(|decade| self.from * 10_f64.powi(decade)).collect();
        }
        let rough = (self.to - self.from) / 5.0;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * power).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let first = (self.from / step).ceil() as i64;
        let last = (self.to / step).floor() as i64;
        (first..=last).map(|number| number as f64 * step).collect()
    }
}

/// A number as short as it can be read.
fn short(value: f64) -> String {
    for (unit, name) in [(1e6, "M"), (1e3, "k")] {
        if value.abs() >= unit {
            return format!("{}{name}", (value / unit * 100.0).round() / 100.0);
        }
    }
    format!("{}", (value * 1_000.0).round() / 1_000.0)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

impl Figure {
    /// The plot as an SVG document.
    pub(crate) fn svg(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let height = TOP + self.panels.len() as f64 * (PANEL + GAP) - GAP + BOTTOM;
        write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
             font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n\
             <text x=\"{LEFT}\" y=\"24\" font-size=\"15\">{}</text>\n",
            escape(&self.title)
        )?;
        let all = self.panels.iter().flat_map(|panel| &panel.series).flat_map(|series| &series.points);
        let x = Scale::new(all.map(|point| point.0), self.is_log, false, (LEFT, WIDTH - RIGHT));
        let mut top = TOP;
        for panel in &self.panels {
            self.write_panel(out, panel, &x, top)?;
            top += PANEL + GAP;
        }
        let under = top - GAP;
        for tick in x.ticks() {
            let at = x.place(tick);
            writeln!(
                out,
                "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                under + 18.0,
                short(tick)
            )?;
        }
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        writeln!(
            out,
            "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n</svg>",
            under + 38.0,
            escape(self.label)
        )
    }

    fn write_panel(&self, out: &mut String, panel: &Panel, x: &Scale, top: f64) -> std::fmt::Result {
        let (right, bottom) = (WIDTH - RIGHT, top + PANEL);
        for (from, to, name) in &self.bands {
            let (from, to) = (x.place(*from).clamp(LEFT, right), x.place(*to).clamp(LEFT, right));
            writeln!(
                out,
                "<rect x=\"{from:.1}\" y=\"{top}\" width=\"{:.1}\" height=\"{PANEL}\" fill=\"#eee\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" fill=\"#555\">{}</text>",
                to - from,
                from + 4.0,
                top + 14.0,
                escape(name)
            )?;
        }
        let points = panel.series.iter().flat_map(|series| &series.points);
        let y = Scale::new(points.map(|point| point.1), panel.is_log, true, (bottom, top));
        for tick in y.ticks() {
            let at = y.place(tick);
            writeln!(
                out,
                "<path d=\"M{LEFT} {at:.1}H{right}\" stroke=\"#ccc\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                at + 4.0,
                short(tick)
            )?;
        }
        let middle = top + PANEL / 2.0;
        writeln!(
            out,
            "<text transform=\"translate(18 {middle}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            escape(panel.label)
        )?;
        for (number, series) in panel.series.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let mut path = String::new();
            for (at, value) in &series.points {
                if !value.is_finite() || panel.is_log && *value <= 0.0 {
                    continue;
                }
                let command = if path.is_empty() { 'M' } else { 'L' };
                write!(path, "{command}{:.1} {:.1}", x.place(*at), y.place(*value))?;
            }
            let beside = top + 14.0 + 18.0 * number as f64;
            writeln!(
                out,
                "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\"/>\
                 <text x=\"{:.1}\" y=\"{beside:.1}\" fill=\"{colour}\">{}</text>",
                right + 10.0,
                escape(&series.name)
            )?;
        }
        writeln!(out, "<path d=\"M{LEFT} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"#333\"/>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(points: Vec<(f64, f64)>, is_log: bool) -> String {
        let series = vec![Series { name: "a < b".to_owned(), points }];
        let panels = vec![Panel { label: "µs", is_log, series }];
        let bands = vec![(0.0, 1.0, "import".to_owned())];
        Figure { title: "T & U".to_owned(), label: "s", is_log: false, panels, bands }.svg()
    }

    #[test]
    fn every_plot_is_drawn_within_its_frame() {
        for points in [
            vec![],
            vec![(1.0, 1.0)],
            vec![(0.0, 0.0), (5.0, 0.0)],
            vec![(0.0, 3.0), (600.0, f64::NAN), (900.0, 70_000.0)],
        ] {
            for is_log in [false, true] {
                let svg = figure(points.clone(), is_log);
                assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
                assert!(svg.contains("a &lt; b") && svg.contains("T &amp; U"));
            }
        }
    }

    #[test]
    fn ticks_are_round_and_within() {
        let scale = Scale::new([0.0, 600.0].into_iter(), false, true, (0.0, 1.0));
        assert_eq!(scale.ticks(), [0.0, 200.0, 400.0, 600.0]);
        let scale = Scale::new([3.0, 20_000.0].into_iter(), true, false, (0.0, 1.0));
        assert_eq!(scale.ticks(), [1.0, 10.0, 100.0, 1_000.0, 10_000.0, 100_000.0]);
        assert_eq!([0.25, 1_500.0, 1e8].map(short), ["0.25", "1.5k", "100M"]);
    }
}
