//! Colours by meaning: one table for every panel.
//!
//! Knows colours; knows no panel and no figure.

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

impl ThemeName {
    #[cfg(test)]
    pub(super) const ALL: [Self; 4] = [Self::Dark, Self::Light, Self::ColourBlind, Self::Mono];
}

/// What a colour stands for, on every panel alike. The name in `[colours]` is the variant's in
/// kebab-case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Figures and words.
    Text,
    /// Labels, units and what is only there to be believed.
    Dim,
    Border,
    Title,
    Key,
    /// The panel that has the keys.
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
    /// Stopped, lost, held back.
    Trouble,
    /// Not known, or old.
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

/// A colour for each meaning, and the hues that tell workers apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Theme {
    colours: BTreeMap<Role, Colour>,
    hues: Vec<Colour>,
    /// Made for a light background.
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

    /// A foreground for a meaning. Without a colour of its own, what is secondary is dimmed and what
    /// has the keys is underlined, so that mono terminals keep the order of importance.
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

    /// It is made for a light background.
    pub fn is_light(&self) -> bool {
        self.light
    }

    /// The hue of the worker with this number.
    pub fn hue(&self, worker: u32) -> Style {
        let count = self.hues.len().max(1);
        let place = usize::try_from(worker).unwrap_or(0) % count;
        Style::new().fg(self.hues.get(place).map_or(Color::Reset, |hue| hue.0))
    }
}

#[cfg(test)]
impl Theme {
    pub(super) fn colours(&self) -> usize {
        self.colours.len()
    }
}
