//! Colours by role: one table for every panel.
//!
//! Does not depend on panels or figures.

use std::collections::BTreeMap;

use ratatui::style::{Color, Modifier, Style};
use serde::{Deserialize, Deserializer};

/// The built-in themes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ThemeName {
    Dark,
    Light,
    ColourBlind,
    Mono,
}

/// What a colour means, the same on every panel. The name in `[colours]` is the variant's in kebab-case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Figures and words.
    Text,
    /// Labels, units and secondary text.
    Dim,
    Border,
    Title,
    Key,
    /// The focused panel.
    Focus,
    /// Working on the CPU.
    Cpu,
    /// Reading, from a disk or the network.
    Read,
    /// Waiting for something upstream.
    Wait,
    /// Blocked on something downstream.
    Full,
    /// Runnable, not running.
    Runnable,
    /// Computing on the GPU.
    Compute,
    /// Stopped, lost, throttled.
    Trouble,
    /// Unknown or outdated.
    Unknown,
}

/// A colour as ratatui names it: `red`, `"117"`, `#rrggbb`, `reset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Colour(Color);

impl<'de> Deserialize<'de> for Colour {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map(Self).map_err(|_| {
            serde::de::Error::custom(format!("`{}` is not a colour", text.escape_debug()))
        })
    }
}

/// A colour for each role, and the hues that distinguish workers.
#[derive(Debug, Clone, PartialEq)]
pub struct Theme {
    colours: BTreeMap<Role, Colour>,
    hues: Vec<Colour>,
    /// Whether the theme is made for a light background.
    light: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThemeFile {
    hues: Vec<Colour>,
    colours: BTreeMap<Role, Colour>,
}

impl Theme {
    pub(super) fn new(name: ThemeName, changes: BTreeMap<Role, Colour>) -> Self {
        let text = match name {
            ThemeName::Dark => include_str!("../../config/themes/dark.toml"),
            ThemeName::Light => include_str!("../../config/themes/light.toml"),
            ThemeName::ColourBlind => include_str!("../../config/themes/colour-blind.toml"),
            ThemeName::Mono => include_str!("../../config/themes/mono.toml"),
        };
        let file: ThemeFile = toml::from_str(text).expect("the built-in themes are tested");
        let mut colours = file.colours;
        colours.extend(changes);
        Self {
            colours,
            hues: file.hues,
            light: name == ThemeName::Light,
        }
    }

    /// Returns the style of a role. If the theme sets no colour, secondary text is dimmed and the focus is underlined,
    /// so that mono terminals keep the order of importance.
    pub fn style(&self, paint: Role) -> Style {
        let colour = self
            .colours
            .get(&paint)
            .map_or(Color::Reset, |colour| colour.0);
        let style = Style::new().fg(colour);
        match (colour, paint) {
            (Color::Reset, Role::Dim | Role::Border | Role::Unknown) => {
                style.add_modifier(Modifier::DIM)
            }
            (Color::Reset, Role::Focus) => style.add_modifier(Modifier::UNDERLINED),
            _ => style,
        }
    }

    /// Whether it is made for a light background.
    pub fn is_light(&self) -> bool {
        self.light
    }

    /// Returns the hue of the worker with this number.
    pub fn hue(&self, worker: u32) -> Style {
        let count = self.hues.len().max(1);
        let place = usize::try_from(worker).unwrap_or(0) % count;
        Style::new().fg(self.hues.get(place).map_or(Color::Reset, |hue| hue.0))
    }
}

#[cfg(test)]
impl Theme {
    /// Returns each colour with its role; the hues of workers have none.
    pub(super) fn colours(&self) -> impl Iterator<Item = (Option<Role>, Color)> {
        let colours = self.colours.iter();
        let colours = colours.map(|(role, colour)| (Some(*role), colour.0));
        colours.chain(self.hues.iter().map(|hue| (None, hue.0)))
    }
}
