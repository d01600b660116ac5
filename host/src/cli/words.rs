//! Words of a person that are put on record, as an argument.

/// What was typed, without blanks around it. Nothing at all says nothing.
pub(super) fn words(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("it needs words: they are put on record".to_owned()),
        words => Ok(words.to_owned()),
    }
}
