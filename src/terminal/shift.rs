//! Parts of a line that are as before, but one cell further to the left: what has scrolled costs less to move than to
//! write.
//!
//! Knows what cells cost; knows nothing of terminals.

/// What moving a part costs: two moves of the cursor, and the two sequences.
pub(super) const LEAST: usize = 20;

/// What one cell costs in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Costs {
    /// Where it stays as it is: 0 where that is right.
    pub(super) stays: usize,
    /// Where its right neighbour has moved on it.
    pub(super) shifted: usize,
    /// Where it is blank.
    pub(super) blank: usize,
}

/// The parts of a line that are best moved, each with its first cell and the one behind its last; the last part first.
pub(super) fn best(line: impl Iterator<Item = Costs>) -> Vec<(u16, u16)> {
    // The least that everything before a cell costs, and the same where a part has begun, and where it has.
    let (mut settled, mut open) = (0_usize, (usize::MAX, 0));
    // Behind each cell: the begin of the part that ends there.
    let mut begins = Vec::new();
    for (x, costs) in (0_u16..).zip(line) {
        let (cost, begin) = open;
        let ended = cost.saturating_add(costs.blank);
        let begun = settled + LEAST;
        open = if begun < cost {
            (begun, x)
        } else {
            (cost, begin)
        };
        open.0 = open.0.saturating_add(costs.shifted);
        let stays = settled + costs.stays;
        begins.push((ended < stays).then_some(begin));
        settled = stays.min(ended);
    }
    let mut parts = Vec::new();
    let mut end = begins.len();
    while let Some(last) = end.checked_sub(1) {
        match begins[last] {
            Some(begin) => {
                parts.push((begin, u16::try_from(end).unwrap_or(u16::MAX)));
                end = usize::from(begin);
            }
            None => end = last,
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs<'a>(before: &'a str, after: &'a str) -> impl Iterator<Item = Costs> + 'a {
        let cost = |is: bool| if is { 0 } else { 3 };
        let next = before.chars().skip(1).chain(['\0']);
        before
            .chars()
            .zip(next)
            .zip(after.chars())
            .map(move |((before, next), after)| Costs {
                stays: cost(after == before),
                shifted: cost(after == next),
                blank: cost(after == ' '),
            })
    }

    #[test]
    fn what_has_scrolled_is_found_and_nothing_else() {
        let before = "| abcdefghijklmnop | 0 to 9: | 0123456789 |";
        let scrolled = "| bcdefghijklmnopq | 0 to 9: | 0123456789 |";
        assert_eq!(best(costs(before, scrolled)), [(2, 18)]);
        assert_eq!(best(costs(before, before)), []);
        let other = "| xxxxxxxxxxxxxxxx | 0 to 9: | 0123456789 |";
        assert_eq!(best(costs(before, other)), []);
        let both = "| bcdefghijklmnopq | 0 to 9: | 1234567890 |";
        assert_eq!(best(costs(before, both)), [(31, 41), (2, 18)]);
    }

    #[test]
    fn what_is_short_is_written() {
        assert_eq!(best(costs("| abcdef |", "| bcdefg |")), []);
    }
}
