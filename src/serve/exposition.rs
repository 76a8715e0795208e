//! Metrics as text: in `OpenMetrics` 1.0 for clients that request it, in Prometheus' text format 0.0.4 for all others
//! and for files.
//!
//! Does not depend on what the metrics mean.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::units::shortened;

/// Maximum number of characters of a label's value.
const MAX_LABEL: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    OpenMetrics,
}

/// Name and value of each label, in the order in which they are written. An empty value means no label.
pub(super) type Labels = Vec<(&'static str, String)>;

/// The values of metrics, by name and labels.
#[derive(Debug, Default)]
pub(super) struct Values(BTreeMap<&'static str, BTreeMap<Labels, f64>>);

impl Values {
    /// Adds a value. `None` is left out.
    pub(super) fn add(
        &mut self,
        name: &'static str,
        labels: Labels,
        value: impl Into<Option<f64>>,
    ) {
        if let Some(value) = value.into() {
            self.0.entry(name).or_default().insert(labels, value);
        }
    }
}

impl Format {
    /// Returns the format for a client with this `Accept` header.
    pub(super) fn wanted(accept: &str) -> Self {
        let quality = |wanted: &str| {
            let ranges = accept.split(',').filter_map(|range| {
                let mut parts = range.split(';').map(str::trim);
                if parts.next()? != wanted {
                    return None;
                }
                let quality = parts.find_map(|part| part.strip_prefix("q="));
                quality.map_or(Some(1.0), |quality| quality.parse::<f64>().ok())
            });
            ranges.fold(0.0, f64::max)
        };
        let open = quality("application/openmetrics-text");
        if open > 0.0 && open >= quality("text/plain") {
            Self::OpenMetrics
        } else {
            Self::Text
        }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// Writes all metrics that have a value. `metrics` has a line for each: its kind, its name, its help.
    pub(super) fn write(self, metrics: &str, values: &Values) -> String {
        debug_assert!(values.0.keys().all(|name| metrics.contains(name)));
        let mut out = String::new();
        for metric in metrics.lines() {
            let mut words = metric.splitn(3, ' ');
            let [kind, name, help] = [(); 3].map(|()| words.next().unwrap_or_default());
            let Some(values) = values.0.get(name) else {
                continue;
            };
            let total = if kind == "counter" { "_total" } else { "" };
            let title = match self {
                Self::Text => total,
                Self::OpenMetrics => "",
            };
            // Writing to a string does not fail.
            let _ = writeln!(out, "# HELP {name}{title} {help}");
            let _ = writeln!(out, "# TYPE {name}{title} {kind}");
            for (labels, value) in values {
                let labels = format_labels(labels);
                let _ = writeln!(out, "{name}{total}{labels} {value}");
            }
        }
        if self == Self::OpenMetrics {
            out.push_str("# EOF\n");
        }
        out
    }
}

fn format_labels(labels: &Labels) -> String {
    let labels = labels.iter().filter(|(_, value)| !value.is_empty());
    let labels: Vec<String> = labels
        .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
        .collect();
    if labels.is_empty() {
        String::new()
    } else {
        format!("{{{}}}", labels.join(","))
    }
}

fn escaped(value: &str) -> String {
    let value = shortened(value, MAX_LABEL, "").replace('\\', r"\\");
    value.replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads a value as a parser of the format does: up to the first quote that is not escaped.
    fn read(written: &str) -> Option<(String, &str)> {
        let mut value = String::new();
        let mut rest = written.char_indices();
        while let Some((at, character)) = rest.next() {
            match character {
                '"' => return Some((value, &written[at + 1..])),
                '\\' => match rest.next()?.1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                other => value.push(other),
            }
        }
        None
    }

    proptest! {
        #[test]
        fn any_label_is_read_as_it_was_meant(value in any::<String>(), tricky in "[\"\\\\\n}{,= a]{0,300}") {
            for value in [value, tricky] {
                let value: String = value.chars().collect();
                let line = format_labels(&vec![("a", value.clone()), ("b", "2".to_owned())]);
                prop_assert!(!line.contains('\n'));
                let kept: String = value.chars().take(MAX_LABEL).collect();
                if kept.is_empty() {
                    prop_assert_eq!(line, "{b=\"2\"}");
                } else {
                    let (read, rest) = read(line.strip_prefix("{a=\"").unwrap()).unwrap();
                    prop_assert_eq!(read, kept);
                    prop_assert_eq!(rest, ",b=\"2\"}");
                }
            }
        }
    }

    #[test]
    fn a_counter_has_its_suffix_in_the_title_of_the_text_format_alone() {
        let metrics = "counter wait_seconds Time waited.\ngauge nothing Not known.\n";
        let mut values = Values::default();
        values.add("wait_seconds", vec![("rank", "0".to_owned())], 1.5);
        values.add("wait_seconds", vec![("rank", "1".to_owned())], None);
        assert_eq!(
            Format::Text.write(metrics, &values),
            "# HELP wait_seconds_total Time waited.\n# TYPE wait_seconds_total counter\n\
             wait_seconds_total{rank=\"0\"} 1.5\n"
        );
        assert_eq!(
            Format::OpenMetrics.write(metrics, &values),
            "# HELP wait_seconds Time waited.\n# TYPE wait_seconds counter\n\
             wait_seconds_total{rank=\"0\"} 1.5\n# EOF\n"
        );
    }

    #[test]
    fn default_format_is_text() {
        let prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;\
             version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        assert_eq!(Format::wanted(prometheus), Format::OpenMetrics);
        for accept in [
            "",
            "*/*",
            "text/html",
            "text/plain;version=0.0.4, application/openmetrics-text;q=0.5",
            "application/openmetrics-text;q=0",
        ] {
            assert_eq!(Format::wanted(accept), Format::Text, "{accept}");
        }
    }
}
