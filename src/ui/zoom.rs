//! How much of the past is shown.

const MINUTE: f64 = 60.0;

const HOUR: f64 = 3600.0;

/// Spans that the keys step through, in seconds.
const SPANS: [f64; 11] = [
    10.0,
    30.0,
    MINUTE,
    2.0 * MINUTE,
    5.0 * MINUTE,
    10.0 * MINUTE,
    30.0 * MINUTE,
    HOUR,
    3.0 * HOUR,
    12.0 * HOUR,
    24.0 * HOUR,
];

/// How much of the past is shown.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Zoom {
    /// One reading per cell of the history panel.
    #[default]
    Automatic,
    /// This many seconds.
    Span(f64),
    /// All of the past.
    Whole,
}

impl Zoom {
    /// Returns the next shorter or longer span. `automatic` is the automatic span in seconds, `drawn` the axis length.
    #[must_use]
    pub fn next(self, wider: bool, automatic: f64, drawn: f64) -> Self {
        let other = |span: &f64| (*span / automatic - 1.0).abs() > 0.02;
        let mut steps: Vec<(f64, Self)> = SPANS
            .into_iter()
            .filter(other)
            .map(|span| (span, Self::Span(span)))
            .collect();
        steps.push((automatic, Self::Automatic));
        steps.push((f64::INFINITY, Self::Whole));
        steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        let now = match self {
            Self::Automatic => automatic,
            Self::Span(seconds) => seconds,
            Self::Whole => f64::INFINITY,
        };
        let mut steps = steps.into_iter();
        let next = if wider {
            steps.find(|(span, _)| *span > now)
        } else {
            // Zooming in skips spans that the job does not fill yet, as they would not change the picture.
            steps.rfind(|(span, _)| *span < now.min(drawn))
        };
        next.map_or(self, |(_, zoom)| zoom)
    }
}
