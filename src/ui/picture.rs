//! Renders a frame as an SVG picture: text stays text, in the colours of the theme.
//!
//! Depends on cells and colours only; does not write files.

use std::fmt::Write as _;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use unicode_width::UnicodeWidthStr;

use crate::config::Theme;

/// Size of a cell in pixels, and font size.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 17.0;
const SIZE: f64 = 14.0;
/// Distance from the top of a line to its base line.
const BASE: f64 = 13.0;
/// Margin around the screen.
const MARGIN: f64 = 10.0;
/// The sixteen named colours, as xterm shows them.
const NAMED: [(Color, (u8, u8, u8)); 16] = [
    (Color::Black, (0, 0, 0)),
    (Color::Red, (205, 0, 0)),
    (Color::Green, (0, 205, 0)),
    (Color::Yellow, (205, 205, 0)),
    (Color::Blue, (0, 0, 238)),
    (Color::Magenta, (205, 0, 205)),
    (Color::Cyan, (0, 205, 205)),
    (Color::Gray, (229, 229, 229)),
    (Color::DarkGray, (127, 127, 127)),
    (Color::LightRed, (255, 0, 0)),
    (Color::LightGreen, (0, 255, 0)),
    (Color::LightYellow, (255, 255, 0)),
    (Color::LightBlue, (92, 92, 255)),
    (Color::LightMagenta, (255, 0, 255)),
    (Color::LightCyan, (0, 255, 255)),
    (Color::White, (255, 255, 255)),
];

/// Colours of text and background where none is set, as in a terminal.
struct Plain {
    letters: &'static str,
    ground: &'static str,
}

/// Returns the whole SVG document.
pub fn svg(buffer: &Buffer, theme: &Theme) -> String {
    let plain = if theme.is_light() {
        Plain {
            letters: "#1c1c1c",
            ground: "#ffffff",
        }
    } else {
        Plain {
            letters: "#d0d0d0",
            ground: "#121212",
        }
    };
    let area = buffer.area;
    let width = f64::from(area.width) * WIDTH + 2.0 * MARGIN;
    let height = f64::from(area.height) * HEIGHT + 2.0 * MARGIN;
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.1} {height:.1}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{}\"/>\n\
         <g font-family=\"ui-monospace, 'DejaVu Sans Mono', 'Liberation Mono', Menlo, Consolas, monospace\" \
         font-size=\"{SIZE}\" fill=\"{}\" xml:space=\"preserve\">\n",
        plain.ground, plain.letters
    );
    for y in 0..area.height {
        line(&mut out, buffer, y, &plain);
    }
    out.push_str("</g>\n</svg>\n");
    out
}

/// Writes a line in pieces of one style each.
fn line(out: &mut String, buffer: &Buffer, y: u16, plain: &Plain) {
    let area = buffer.area;
    let row = f64::from(y) * HEIGHT + MARGIN;
    let mut x = 0;
    while x < area.width {
        let first = &buffer[(area.x + x, area.y + y)];
        let begin = x;
        let mut text = String::new();
        while x < area.width {
            let cell = &buffer[(area.x + x, area.y + y)];
            if !same_style(cell, first) {
                break;
            }
            text.push_str(cell.symbol());
            // A wide letter also covers the next cell.
            x += u16::try_from(cell.symbol().width()).unwrap_or(1).max(1);
        }
        let cells = f64::from(x.min(area.width) - begin);
        let left = f64::from(begin) * WIDTH + MARGIN;
        let style = style(first, plain);
        if let Some(ground) = style.ground {
            let _ = writeln!(
                out,
                "<rect x=\"{left:.1}\" y=\"{row:.1}\" width=\"{:.1}\" height=\"{HEIGHT}\" fill=\"{ground}\"/>",
                cells * WIDTH
            );
        }
        let shown = text.trim_end();
        if shown.is_empty() {
            continue;
        }
        let blank = text.len() - text.trim_start().len();
        let left = left + blank as f64 * WIDTH;
        let shown = shown.trim_start();
        // A fixed length keeps columns aligned in any font.
        let length = shown.width() as f64 * WIDTH;
        let _ = writeln!(
            out,
            "<text x=\"{left:.1}\" y=\"{:.1}\" textLength=\"{length:.1}\" lengthAdjust=\"spacingAndGlyphs\"{}>{}</text>",
            row + BASE,
            style.letters,
            escaped(shown)
        );
    }
}

fn same_style(one: &Cell, other: &Cell) -> bool {
    (one.fg, one.bg, one.modifier) == (other.fg, other.bg, other.modifier)
}

struct Style {
    /// Attributes of the text.
    letters: String,
    ground: Option<String>,
}

fn style(cell: &Cell, plain: &Plain) -> Style {
    let (mut letters, mut ground) = (colour(cell.fg), colour(cell.bg));
    if cell.modifier.contains(Modifier::REVERSED) {
        let swapped = letters.unwrap_or_else(|| plain.letters.to_owned());
        letters = Some(ground.unwrap_or_else(|| plain.ground.to_owned()));
        ground = Some(swapped);
    }
    let mut attributes = letters.map_or_else(String::new, |fill| format!(" fill=\"{fill}\""));
    for (modifier, attribute) in [
        (Modifier::BOLD, " font-weight=\"bold\""),
        (Modifier::DIM, " opacity=\"0.6\""),
        (Modifier::ITALIC, " font-style=\"italic\""),
        (Modifier::UNDERLINED, " text-decoration=\"underline\""),
    ] {
        if cell.modifier.contains(modifier) {
            attributes.push_str(attribute);
        }
    }
    Style {
        letters: attributes,
        ground,
    }
}

/// Returns `#rrggbb`; `None` for the terminal's default.
fn colour(colour: Color) -> Option<String> {
    let (red, green, blue) = match colour {
        Color::Rgb(red, green, blue) => (red, green, blue),
        Color::Indexed(index) => indexed(index),
        // `Reset` has no name.
        named => NAMED.iter().find(|(name, _)| *name == named)?.1,
    };
    Some(format!("#{red:02x}{green:02x}{blue:02x}"))
}

/// Returns a colour of the 256-colour palette: sixteen named ones, a cube of six levels, and greys.
fn indexed(index: u8) -> (u8, u8, u8) {
    match index {
        0..16 => NAMED[usize::from(index)].1,
        16..232 => {
            let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
            let place = index - 16;
            (level(place / 36), level(place / 6 % 6), level(place % 6))
        }
        232.. => {
            let grey = 8 + 10 * (index - 232);
            (grey, grey, grey)
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    use super::*;
    use crate::config::Config;

    #[test]
    fn text_stays_text_in_its_place_and_colour() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 20, 2));
        buffer.set_string(2, 1, "a<b & 訓c", Style::new().fg(Color::Indexed(117)));
        buffer.set_string(14, 1, "bold", Style::new().add_modifier(Modifier::BOLD));
        let svg = svg(&buffer, &Config::default().theme);
        assert!(
            svg.contains("fill=\"#87d7ff\">a&lt;b &amp; 訓c</text>"),
            "{svg}"
        );
        assert!(svg.contains("font-weight=\"bold\">bold</text>"), "{svg}");
        assert!(svg.contains("x=\"26.8\" y=\"40.0\""), "{svg}");
        assert!(
            svg.contains(&format!("x=\"{:.1}\"", 14.0 * WIDTH + MARGIN)),
            "{svg}"
        );
        // Blank cells are not drawn.
        assert_eq!(svg.matches("<text").count(), 2, "{svg}");
    }

    #[test]
    fn the_palette_is_that_of_xterm() {
        assert_eq!(indexed(16), (0, 0, 0));
        assert_eq!(indexed(231), (255, 255, 255));
        assert_eq!(indexed(232), (8, 8, 8));
        assert_eq!(indexed(255), (238, 238, 238));
        assert_eq!(colour(Color::Reset), None);
    }
}
