//! One delivery over a session that is recorded or replayed, and what is wrong with it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::file::{Header, Ids, Session};
use crate::attempt::{self, Means, Record, Stop, Work};
use crate::job::evidence::{Answer, Evidence};
use crate::job::facts::FileFacts;
use crate::job::verdict::Conclusion;
use crate::plugin::{Measured, Meter};
use crate::rehearsal::RehearsalError;
use crate::rehearsal::later::{self, Later};
use crate::rehearsal::record::{Concluded, Kept, MemoryRecord, Orders};
use crate::rehearsal::report::SessionReport;
use crate::rehearsal::stage::{self, Stage};
use crate::rehearsal::weigh;
use crate::remote::recorded::{self, Difference};
use crate::remote::{self, ScratchNames, SessionLimits, Sessions};

/// How long the session may lie before the attempt takes it; it does so at once.
const IDLE: Duration = Duration::from_secs(600);

/// A delivery, as it went.
pub(super) struct Played {
    pub concluded: Concluded,
    pub later: Option<Later>,
    pub kept: Kept,
    pub calls: Vec<Measured>,
    pub took: Duration,
}

/// Delivers the case over the session: the proof on scratch names, the attempt, the later look.
pub(super) async fn play(
    stage: &Stage,
    session: &recorded::Session,
    ids: &Ids,
    expected: &FileFacts,
) -> Result<Played, RehearsalError> {
    let began = Instant::now();
    let over = remote::Session::Recorded(session.clone());
    let scratch = ScratchNames::with_ids(&stage.bundle.manifest.names.temporary, &expected.name, ids.scratch)
        .map_err(|error| RehearsalError::Names { why: error.to_string() })?;
    let proof = remote::prove(&over, &scratch).await.map_err(RehearsalError::NotProven)?;

    let meter = Meter::default();
    // The plugin learns nothing of where the server really is.
    let destination = stage.destination(0, "", meter.clone());
    let sessions = Sessions::new(SessionLimits::default(), IDLE);
    sessions.give_back(destination.id, &destination.endpoint, over.clone()).await;
    let asked = session.clone();
    let record = Arc::new(MemoryRecord::new(move || asked.asked(), Orders::default(), proof, None));
    let work = Work {
        job: stage::job(&stage.case, ids.attempt),
        bundle: Arc::clone(&stage.bundle),
        destination: Arc::new(destination),
        means: Means { spool: stage.spool.clone(), sessions: sessions.clone() },
        stop: Stop::new(),
    };
    attempt::run(&work, Arc::clone(&record) as Arc<dyn Record>).await;
    sessions.close().await;

    let kept = record.kept();
    let concluded = kept.concluded.clone();
    let concluded = concluded.unwrap_or(Concluded::Nothing { why: "the attempt did not end".to_owned() });
    let later = match (&kept.expected, &concluded) {
        (Some(expected), Concluded::By(Conclusion::Completed(_) | Conclusion::Unknown(_))) => {
            Some(later::look(&work, &record, expected, &over).await)
        }
        (
            None | Some(_),
            Concluded::By(_)
            | Concluded::Failed { .. }
            | Concluded::Released { .. }
            | Concluded::Stopped
            | Concluded::Nothing { .. },
        ) => None,
    };
    Ok(Played { concluded, later, kept: record.kept(), calls: meter.calls(), took: began.elapsed() })
}

/// Delivers the case again over what was written down.
pub(in crate::rehearsal) async fn replay(
    stage: &Stage,
    recorded: &Session,
    expected: &FileFacts,
) -> Result<(SessionReport, Vec<Measured>), RehearsalError> {
    let Session { header, steps, .. } = recorded;
    let ids = Ids::again(header.attempt);
    let session = recorded::Session::replaying(header.server.clone(), steps.clone());
    let played = match play(stage, &session, &ids, expected).await {
        Ok(played) => Some(played),
        Err(RehearsalError::NotProven(_)) if session.difference().is_some() => None,
        Err(error) => return Err(error),
    };
    let mut report = report(&recorded.name, &session, played.as_ref());
    match (session.difference(), &played) {
        // Whatever else is wrong follows from it.
        (Some(difference), _) => {
            report.wrong = vec![ids.hide(&sentence(&difference))];
            report.wrong.extend(played.iter().flat_map(|played| played.calls.iter().flat_map(weigh::forbidden)));
        }
        (None, Some(played)) => report.wrong.extend(otherwise(recorded, played)),
        (None, None) => {}
    }
    Ok((report, played.map(|played| played.calls).unwrap_or_default()))
}

/// The report of a delivery, with what is wrong with it by itself.
pub(super) fn report(name: &str, session: &recorded::Session, played: Option<&Played>) -> SessionReport {
    let mut report = SessionReport {
        session: name.to_owned(),
        server: session.described().banner,
        requests: session.asked(),
        milliseconds: 0,
        plugin_did: Vec::new(),
        concluded: String::new(),
        because: String::new(),
        later: None,
        written: None,
        left: Vec::new(),
        wrong: Vec::new(),
    };
    if let Some(played) = played {
        report.milliseconds = weigh::milliseconds(played.took);
        report.plugin_did = played.calls.iter().flat_map(weigh::did).collect();
        report.concluded = played.concluded.name();
        report.because = played.concluded.because();
        report.later = played.later.as_ref().map(|later| later.conclusion.to_string());
        report.wrong = wrong(played);
    }
    report
}

fn wrong(played: &Played) -> Vec<String> {
    let mut wrong: Vec<String> = played.calls.iter().filter_map(|call| weigh::broke(call, true)).collect();
    wrong.extend(played.calls.iter().flat_map(weigh::forbidden));
    wrong.extend(weigh::differing(&played.kept));
    wrong.extend(weigh::unread(&played.kept));
    let acknowledged = |evidence: &Evidence| matches!(evidence, Evidence::Publish { answer: Answer::Acknowledged, .. });
    let delivered = match &played.concluded {
        Concluded::By(Conclusion::Completed(_)) => true,
        // Its evidence comes later, or a person has to ask.
        Concluded::By(Conclusion::Unknown(_)) => played.kept.evidence.iter().any(acknowledged),
        Concluded::By(Conclusion::NotDelivered(_))
        | Concluded::Failed { .. }
        | Concluded::Released { .. }
        | Concluded::Stopped
        | Concluded::Nothing { .. } => false,
    };
    if !delivered {
        let why = played.kept.attention.clone().unwrap_or_else(|| played.concluded.because());
        wrong.push(format!("it was not delivered: the host concluded {}: {why}", played.concluded.name()));
    }
    wrong
}

/// What was concluded otherwise than when it was recorded.
fn otherwise(recorded: &Session, played: &Played) -> Vec<String> {
    let Header { concluded, later, .. } = &recorded.header;
    let name = |later: &Later| later.conclusion.to_string();
    let pairs = [
        ("at once", Some(concluded.clone()), Some(played.concluded.name())),
        ("by a later look", later.clone(), played.later.as_ref().map(name)),
    ];
    let said = |name: Option<String>| name.unwrap_or_else(|| "nothing".to_owned());
    let differing = pairs.into_iter().filter(|(_, then, now)| then != now);
    let told = differing.map(|(when, then, now)| {
        let (then, now) = (said(then), said(now));
        format!(
            "the answers are the same and the host concluded {now} {when}, where it was {then} when it was recorded; if the change is meant, record the session again"
        )
    });
    told.collect()
}

fn sentence(difference: &Difference) -> String {
    let Difference { number, recorded, asked } = difference;
    let what = match (recorded, asked) {
        (Some(recorded), Some(asked)) => {
            format!("request {number} is another one than was recorded: then it was {recorded}, now it is {asked}")
        }
        (Some(recorded), None) => format!("request {number} of the record was not made: {recorded}"),
        (None, Some(asked)) => format!("request {number} is one more than was recorded: {asked}"),
        (None, None) => format!("request {number} differs"),
    };
    format!("{what}; if the change is meant, record the session again")
}
