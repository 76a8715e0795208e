//! A word in letters three lines high, to be read from afar: half a cell is a pixel.

/// Each letter with its five rows of pixels.
const LETTERS: [(char, [&str; 5]); 21] = [
    ('A', [" # ", "# #", "###", "# #", "# #"]),
    ('B', ["## ", "# #", "## ", "# #", "## "]),
    ('C', ["###", "#  ", "#  ", "#  ", "###"]),
    ('D', ["## ", "# #", "# #", "# #", "## "]),
    ('E', ["###", "#  ", "## ", "#  ", "###"]),
    ('G', ["####", "#   ", "# ##", "#  #", "####"]),
    ('H', ["# #", "# #", "###", "# #", "# #"]),
    ('I', ["#", "#", "#", "#", "#"]),
    ('K', ["# #", "# #", "## ", "# #", "# #"]),
    ('L', ["#  ", "#  ", "#  ", "#  ", "###"]),
    ('M', ["#   #", "## ##", "# # #", "#   #", "#   #"]),
    ('N', ["#  #", "## #", "# ##", "#  #", "#  #"]),
    ('O', ["###", "# #", "# #", "# #", "###"]),
    ('P', ["###", "# #", "###", "#  ", "#  "]),
    ('R', ["###", "# #", "## ", "# #", "# #"]),
    ('S', ["###", "#  ", "###", "  #", "###"]),
    ('T', ["###", " # ", " # ", " # ", " # "]),
    ('U', ["# #", "# #", "# #", "# #", "###"]),
    ('W', ["#   #", "#   #", "# # #", "## ##", "#   #"]),
    ('-', ["  ", "  ", "##", "  ", "  "]),
    (' ', ["  ", "  ", "  ", "  ", "  "]),
];

/// Returns the word with a blank row of half a cell above it. `None` if a letter is missing.
pub(super) fn lines(word: &str) -> Option<[String; 3]> {
    // From the blank row above.
    let mut rows: [String; 6] = Default::default();
    for letter in word.chars() {
        let (_, pixels) = LETTERS.iter().find(|(other, _)| *other == letter)?;
        for (place, row) in rows.iter_mut().enumerate() {
            let inside = place.checked_sub(1).and_then(|place| pixels.get(place));
            let blank = " ".repeat(pixels[0].len());
            row.push_str(inside.copied().unwrap_or(&blank));
            row.push(' ');
        }
    }
    let cells = |upper: &str, lower: &str| {
        let pairs = upper.chars().zip(lower.chars());
        let cell = |(upper, lower): (char, char)| match (upper == '#', lower == '#') {
            (true, true) => '█',
            (true, false) => '▀',
            (false, true) => '▄',
            (false, false) => ' ',
        };
        pairs.map(cell).collect()
    };
    Some([0, 2, 4].map(|row| cells(&rows[row], &rows[row + 1])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Kind;

    #[test]
    fn every_answer_has_its_letters() {
        use Kind::{
            Balanced, CommunicationBound, ComputeBound, DataBound, HostBound, Stalled, Unknown,
            WarmingUp,
        };
        for kind in [
            Balanced,
            CommunicationBound,
            ComputeBound,
            DataBound,
            HostBound,
            Stalled,
            Unknown,
            WarmingUp,
        ] {
            assert!(lines(kind.words()).is_some(), "{}", kind.words());
        }
        let widths = LETTERS.iter().map(|(_, rows)| rows.map(str::len));
        assert!(widths.into_iter().all(|rows| rows == [rows[0]; 5]));
    }

    #[test]
    fn a_pixel_is_half_a_cell() {
        let expected = ["▄▄▄ ▄▄▄  ", "█▄█  █  ▄▄", "█    █    "];
        let [above, middle, below] = lines("PT-").unwrap();
        assert_eq!(
            [above.trim_end(), middle.trim_end(), below.trim_end()],
            expected.map(str::trim_end)
        );
    }
}
