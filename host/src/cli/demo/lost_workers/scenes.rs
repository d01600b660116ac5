//! What happens to the jobs of the second act. Every step waits for a fact: in a row, in PostgreSQL's locks, in the partner's
//! files, or on the line.

use std::fs;

use anyhow::{Context as _, bail};
use uuid::Uuid;

use super::cast::{Scene, temporary};
use super::process::HostProcess;
use super::{Act, Cast, Upkeep, alder};
use crate::cli::demo::line::Line;
use crate::cli::demo::psql::Held;
use crate::cli::demo::scenes::WAITS_FOR_CONSENTS;
use crate::cli::demo::watch;
use crate::job::model::Job;
use crate::job::status::{EventKind, FailureReason, Status};

/// Who decides in the second act.
pub(super) const GRACE: &str = "grace@waybill.example";
pub(super) const TICKET: &str = "ticket 4812";

/// Kills a host while its query waits for a locked table: nothing was authorized, and nothing was sent.
pub(super) async fn killed_while_building(act: &Act<'_>, cast: &Cast, lock: Held) -> anyhow::Result<Uuid> {
    let (scene, key) = (Scene::Building, Scene::Building.key());
    let host = act.host("building", &[scene], Upkeep::None, cast)?;
    let job = act.create(scene, &host).await?;
    act.until(&format!("the query of {key} waits for a locked table"), &host, async || {
        Ok((act.crm.run(WAITS_FOR_CONSENTS, &[]).await? == "1").then_some(()))
    })
    .await?;
    expect(&act.job(job).await?, Status::Running, false)?;
    let pid = host.pid();
    host.kill().await?;
    act.watch.tell(&format!("{key}: process {pid} is killed (SIGKILL) while its query waits for a locked table"))?;
    lock.release().await?;
    Ok(job)
}

/// Kills a host while half of the file is on the line: after cutoff 2, before the publish fence.
pub(super) async fn killed_while_uploading(act: &Act<'_>, cast: &Cast, line: &mut Line) -> anyhow::Result<Uuid> {
    let (scene, key) = (Scene::Uploading, Scene::Uploading.key());
    let host = act.host("uploading", &[scene], Upkeep::None, cast)?;
    let job = act.create(scene, &host).await?;
    let (sent, of) = in_the_middle(act, scene, job, &host, line).await?;
    let pid = host.pid();
    host.kill().await?;
    act.watch.tell(&format!(
        "{key}: process {pid} is killed during the upload; {sent} of {of} bytes lie at the partner, under a temporary name"
    ))?;
    line.release();
    Ok(job)
}

/// Kills a host after the partner's server has done the publish, while its answer is still on the line.
pub(super) async fn killed_after_publishing(act: &Act<'_>, cast: &Cast, line: &mut Line) -> anyhow::Result<Uuid> {
    let (scene, key) = (Scene::Published, Scene::Published.key());
    let host = act.host("published", &[scene], Upkeep::None, cast)?;
    let job = act.create(scene, &host).await?;
    // Piece by piece: the host waits for the answer to all that it has sent before it commits the fence, so while a piece is
    // held without one, that piece cannot be the publish.
    act.within(&format!("{key} is past the publish fence"), &host, async {
        line.held().await?;
        while act.job(job).await?.publish_intended_at.is_none() {
            line.step().await?;
        }
        Ok(())
    })
    .await?;
    line.silence();
    let file = act.at_partner(&scene.final_name());
    act.until(&format!("the file of {key} has its final name"), &host, async || Ok(file.is_file().then_some(())))
        .await?;
    expect(&act.job(job).await?, Status::Delivering, true)?;
    let pid = host.pid();
    host.kill().await?;
    line.cut();
    act.watch.tell(&format!(
        "{key}: process {pid} is killed after the publish, before its answer came; the line to the partner is down, too"
    ))?;
    Ok(job)
}

/// Has a host stand still in the middle of an upload.
pub(super) async fn paused_while_uploading(
    act: &Act<'_>,
    cast: &Cast,
    line: &mut Line,
) -> anyhow::Result<(Uuid, HostProcess)> {
    let (scene, key) = (Scene::Paused, Scene::Paused.key());
    let host = act.host("paused", &[scene], Upkeep::None, cast)?;
    let job = act.create(scene, &host).await?;
    let (sent, of) = in_the_middle(act, scene, job, &host, line).await?;
    host.pause()?;
    act.watch.tell(&format!(
        "{key}: process {} is paused (SIGSTOP) during the upload, with {sent} of {of} bytes at the partner",
        host.pid()
    ))?;
    Ok((job, host))
}

/// The job of the killed builder is requeued, and another host delivers it.
pub(super) async fn delivered_by_another(act: &Act<'_>, second: &HostProcess, job: Uuid) -> anyhow::Result<()> {
    let key = Scene::Building.key();
    becomes(act, second, job, EventKind::RequeuedByRecovery).await?;
    act.watch.tell(&format!("{key}: nothing was authorized; recovery puts it back into the queue"))?;
    ends(act, second, job, Status::Completed, None).await?;
    act.watch.tell(&format!("{key}: delivered by the other host, in its second attempt"))
}

/// The killed upload is proven not delivered, and a person has it delivered once more.
pub(super) async fn replaced(act: &Act<'_>, second: &HostProcess, job: Uuid) -> anyhow::Result<Uuid> {
    let key = Scene::Uploading.key();
    becomes(act, second, job, EventKind::ResolvedByRecovery).await?;
    act.watch.tell(&format!("{key}: recovery cannot know what its worker did → OutcomeUnknown"))?;
    ends(act, second, job, Status::Failed, Some(FailureReason::NotDelivered)).await?;
    act.watch.tell(&format!(
        "{key}: it lost the job before the publish fence, so it never published and never will → Failed/NotDelivered"
    ))?;
    let (id, tenant) = (job.to_string(), alder().id.to_string());
    let reason = "The customer waits for it; what was left at the partner has no final name";
    let answer = second.ask(&["job", "replace", &id, "--tenant", &tenant, "--reason", reason, "--as", GRACE]).await?;
    let replacement = answer.get("replacement").and_then(|id| id.as_str()?.parse().ok());
    let replacement: Uuid = replacement.with_context(|| format!("`waybill job replace` answered {answer}"))?;
    act.watch.tell(&format!("{key}: {GRACE} has it replaced (waybill job replace)"))?;
    ends(act, second, replacement, Status::Completed, None).await?;
    act.watch.tell(&format!("{key}: the replacement is delivered, under the same key and name"))?;
    Ok(replacement)
}

/// The file that was published stays unknown until the partner can be looked at again.
pub(super) async fn found_at_the_partner(
    act: &Act<'_>,
    second: &HostProcess,
    job: Uuid,
    line: &Line,
) -> anyhow::Result<()> {
    let key = Scene::Published.key();
    becomes(act, second, job, EventKind::ResolvedByRecovery).await?;
    expect(&act.job(job).await?, Status::OutcomeUnknown, true)?;
    act.watch.tell(&format!("{key}: the partner cannot be looked at → OutcomeUnknown; now the line is up again"))?;
    line.release();
    ends(act, second, job, Status::Completed, None).await?;
    act.watch.tell(&format!("{key}: the reconciler finds the file whole under its final name → Completed"))
}

/// The paused host goes on after its job was taken over: its next renewal tells it, and what it has begun it does not end.
pub(super) async fn resumed_too_late(
    act: &Act<'_>,
    second: &HostProcess,
    job: Uuid,
    paused: HostProcess,
    line: &Line,
) -> anyhow::Result<()> {
    let key = Scene::Paused.key();
    becomes(act, second, job, EventKind::ResolvedByRecovery).await?;
    line.release();
    paused.resume()?;
    act.watch.tell(&format!(
        "{key}: recovery took it over; process {} goes on (SIGCONT), with a line that is free",
        paused.pid()
    ))?;
    act.until(&format!("the host that was paused records what it did of {key}"), &paused, async || {
        let events = act.events(job).await?;
        let worker = events.iter().find_map(|event| event.worker.clone());
        let after = events.iter().skip_while(|event| event.kind != EventKind::ResolvedByRecovery);
        let own = |kind: EventKind, by: &Option<String>| kind == EventKind::DeliveryEvidence && *by == worker;
        Ok(after.into_iter().any(|event| own(event.kind, &event.observed_by)).then_some(()))
    })
    .await?;
    ends(act, second, job, Status::Failed, Some(FailureReason::NotDelivered)).await?;
    paused.end().await?;
    act.watch.tell(&format!(
        "{key}: it publishes nothing and records what it did, late; the job stays taken → Failed/NotDelivered"
    ))
}

/// A delivered file is lost at the partner, who calls; a person corrects the record.
pub(super) async fn corrected(act: &Act<'_>, second: &HostProcess) -> anyhow::Result<Uuid> {
    let (scene, key) = (Scene::Called, Scene::Called.key());
    let job = act.create(scene, second).await?;
    ends(act, second, job, Status::Completed, None).await?;
    let file = act.at_partner(&scene.final_name());
    fs::remove_file(&file).with_context(|| format!("the partner could not lose {}", file.display()))?;
    act.watch.tell(&format!("{key}: delivered; then the partner's disk is set back, and they call: it is gone"))?;
    let (id, tenant) = (job.to_string(), alder().id.to_string());
    let reason = "Ms. Okafor of Kestrel called: their disk was set back before the import, and they have no such file.";
    let words = ["--from", "completed", "--to", "failed", "--reason", reason, "--evidence", TICKET, "--as", GRACE];
    let command = [&["job", "correct", &id, "--tenant", &tenant], words.as_slice()].concat();
    second.ask(&command).await?;
    act.watch.tell(&format!("{key}: {GRACE} corrects the record (waybill job correct) → Failed/NotDelivered"))?;
    Ok(job)
}

/// Waits until an upload is held with a part of the file at the partner. Answers how many bytes of how many.
async fn in_the_middle(
    act: &Act<'_>,
    scene: Scene,
    job: Uuid,
    host: &HostProcess,
    line: &mut Line,
) -> anyhow::Result<(u64, u64)> {
    let what = format!("the upload of {} is under way", scene.key());
    act.within(&what, host, line.held()).await?;
    let row = act.job(job).await?;
    expect(&row, Status::Delivering, false)?;
    let (Some(attempt), Some(expected)) = (row.attempt, row.expected) else { bail!("a delivery without an attempt") };
    let part = act.at_partner(&temporary(attempt));
    let size = || fs::metadata(&part).map_or(0, |found| found.len());
    let sent = act.until(&what, host, async || Ok(Some(size()).filter(|bytes| *bytes > 0))).await?;
    if sent >= expected.bytes {
        bail!("the upload of {} was to be held, and is done", scene.key());
    }
    Ok((sent, expected.bytes))
}

async fn becomes(act: &Act<'_>, second: &HostProcess, job: Uuid, kind: EventKind) -> anyhow::Result<()> {
    act.until(&format!("the job {job} has the event {kind}"), second, async || {
        Ok(act.events(job).await?.iter().any(|event| event.kind == kind).then_some(()))
    })
    .await
}

async fn ends(
    act: &Act<'_>,
    second: &HostProcess,
    job: Uuid,
    status: Status,
    reason: Option<FailureReason>,
) -> anyhow::Result<()> {
    act.until(&format!("the job {job} is {status}"), second, async || {
        let found = act.job(job).await?;
        if (found.status, found.failure_reason) == (status, reason) {
            return Ok(Some(()));
        }
        // What is unknown is settled yet; any other end is one.
        if found.status.is_terminal() && found.status != Status::OutcomeUnknown {
            bail!("the job {} became {}", found.delivery_key, watch::state(&found));
        }
        Ok(None)
    })
    .await
}

fn expect(job: &Job, status: Status, fenced: bool) -> anyhow::Result<()> {
    if job.status == status && job.publish_intended_at.is_some() == fenced {
        return Ok(());
    }
    let fence = if fenced { "past" } else { "before" };
    bail!("the job {} was to be {status}, {fence} the publish fence, and is {}", job.delivery_key, watch::state(job))
}
