//! What a named person answers for: who, why, and where the evidence is.

/// A person's decision about a job's outcome. None of its words is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    by: String,
    reason: String,
    evidence_ref: String,
}

/// A decision without all of its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a decision about an outcome needs a name, a reason and a reference to the evidence; {missing} is empty")]
pub struct WordsMissing {
    pub missing: &'static str,
}

impl Decision {
    /// A decision; words are trimmed, and none may be empty.
    pub fn new(by: &str, reason: &str, evidence_ref: &str) -> Result<Self, WordsMissing> {
        let words = |text: &str, missing| match text.trim() {
            "" => Err(WordsMissing { missing }),
            text => Ok(text.to_owned()),
        };
        Ok(Self {
            by: words(by, "the name")?,
            reason: words(reason, "the reason")?,
            evidence_ref: words(evidence_ref, "the reference to the evidence")?,
        })
    }

    /// The person.
    pub fn by(&self) -> &str {
        &self.by
    }

    /// Why, in their words.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Where the evidence is.
    pub fn evidence_ref(&self) -> &str {
        &self.evidence_ref
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_without_a_word_names_the_missing_one() {
        assert_eq!(Decision::new("Ada", "  ", "case 7").unwrap_err().missing, "the reason");
        assert!(Decision::new("", "seen at the partner", "case 7").unwrap_err().to_string().contains("the name"));
        assert_eq!(Decision::new(" Ada ", "seen", "case 7").unwrap().by(), "Ada");
    }
}
