//! The line to the partner is cut at each request of a delivery: before the publish, at it, and after it.

use std::sync::{Arc, Mutex};

use waybill::job::evidence::{Answer, Evidence};
use waybill::job::status::{EventKind, Status};
use waybill::upkeep::Looked;
use waybill_tests::proxy::{Fault as LineFault, Moment};
use waybill_tests::sftp_server::{Action, Behaviour, Event, Fault, Gate, RenameSteps, When};
use waybill_tests::{House, Plan, Proxy, Reach, SftpServer, Sshd, wait};

use super::{COMPLETED, NOT_DELIVERED, ONE_STEP, Silent, UNKNOWN, agreed, renames};
use crate::delivery::LONG;

/// One cut, at the `nth` request of a delivery from its recorded baseline on.
struct Cut {
    when: When,
    nth: usize,
    looks: usize,
    requests: usize,
    met: Option<(Action, String)>,
}

impl Cut {
    const fn at(when: When, nth: usize) -> Self {
        Self { when, nth, looks: 0, requests: 0, met: None }
    }

    fn meets(&mut self, event: &Event<'_>) -> Option<Fault> {
        let final_name = event.path.contains("contacts-");
        if self.met.is_some() || !(final_name || event.path.contains(".part")) {
            return None;
        }
        // The first two looks at the final name come before cutoff 2; the third is that of the recorded baseline.
        self.looks += usize::from(final_name && event.action == Action::Stat && event.when == When::Before);
        if self.looks < 3 || event.when != self.when {
            return None;
        }
        self.requests += 1;
        (self.requests == self.nth).then(|| {
            self.met = Some((event.action, event.path.to_owned()));
            Fault::Cut
        })
    }
}

/// The same delivery again and again, its line cut one request later each time, until the cut comes at the publish.
async fn cut_at_each_request(behaviour: Behaviour, publish: Action) -> anyhow::Result<()> {
    let server = SftpServer::start(behaviour).await?;
    let directory = tempfile::tempdir()?;
    let house = House::before(&Reach::in_process(&server, directory.path())?, agreed(ONE_STEP)).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    // How the server publishes is known from the first job on.
    house.until(house.create().await?, Status::Completed).await?;
    let cut = Arc::new(Mutex::new(Cut::at(When::Before, usize::MAX)));
    let asked = Arc::clone(&cut);
    server.hook(move |event| asked.lock().unwrap().meets(event));
    for when in [When::Before, When::After] {
        let mut cut_at = Vec::new();
        loop {
            *cut.lock().unwrap() = Cut::at(when, cut_at.len() + 1);
            let id = house.create().await?;
            let job = house.until_ended(id).await?;
            let met = cut.lock().unwrap().met.take();
            let (action, path) = met.ok_or_else(|| anyhow::anyhow!("nothing was cut: {job:?}"))?;
            cut_at.push(action);
            let place = format!("{when:?} {action:?} {path}");
            if action == publish {
                assert_eq!((job.status, job.failure_reason), UNKNOWN, "{place}");
                // It may still be published, so its temporary file stays; it is out of the way of the others here.
                server.names_in("/").iter().filter(|name| name.starts_with('.')).for_each(|left| {
                    server.collect(left);
                });
                break;
            }
            assert_eq!((job.status, job.failure_reason), NOT_DELIVERED, "{place}");
            let name = House::final_name(id);
            assert_eq!((server.read(&name), server.times_created(&name)), (None, 0), "{place}");
            assert_eq!(job.publish_intended_at, None, "{place}");
            // What was sent of it is cleared away through another line.
            wait::until(&format!("nothing to be left ({place})"), async || {
                Ok((!server.names_in("/").iter().any(|name| name.starts_with('.'))).then_some(()))
            })
            .await?;
        }
        for action in [Action::Stat, Action::Open, Action::Write, Action::Close, publish] {
            assert!(cut_at.contains(&action), "{when:?}: no {action:?} among {cut_at:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn del_03_cut_at_any_request_before_a_rename_there_is_no_final_name_and_it_is_not_delivered() -> anyhow::Result<()>
{
    cut_at_each_request(renames(), Action::Rename).await
}

#[tokio::test]
async fn del_03_cut_at_any_request_before_a_link_there_is_no_final_name_and_it_is_not_delivered() -> anyhow::Result<()>
{
    cut_at_each_request(Behaviour::default(), Action::Link).await
}

/// A delivery whose line is cut at the RENAME to the final name, on this side of its effect, or between its two steps.
async fn cut_at_the_publish(when: When, plan: Plan) -> anyhow::Result<Silent> {
    let two_steps = Behaviour { rename_steps: RenameSteps::LinkThenRemove, ..renames() };
    let behaviour = if when == When::Between { two_steps } else { renames() };
    let silent = Silent::ended(behaviour, plan, move |name, event| {
        (event.when == when && event.action == Action::Rename && event.path.ends_with(name)).then_some(Fault::Cut)
    })
    .await?;
    assert_eq!(silent.stands().await?, UNKNOWN, "{when:?}");
    assert_eq!(silent.server.times_created(&silent.name()), 1);
    let unanswered = silent
        .evidence()
        .await?
        .into_iter()
        .any(|one| matches!(one, Evidence::Publish { answer: Answer::Unanswered { .. }, .. }));
    assert!(unanswered, "the journal does not say that the publish was not answered");
    Ok(silent)
}

/// The next look settles it as Completed, by this kind of evidence, and nothing was sent again.
async fn completes_by(silent: &Silent, kind: &str) -> anyhow::Result<()> {
    assert_eq!(silent.looked().await?, [Looked::Reconciled(Status::Completed)]);
    assert_eq!(silent.stands().await?, COMPLETED);
    assert_eq!(silent.detail(EventKind::Reconciled).await?["proof"]["conclusion"], kind);
    assert_eq!(silent.server.times_created(&silent.name()), 1);
    Ok(())
}

#[tokio::test]
async fn del_03_cut_at_the_publish_the_listing_settles_it_later() -> anyhow::Result<()> {
    let silent = cut_at_the_publish(When::After, agreed(ONE_STEP)).await?;
    assert_eq!(silent.detail(EventKind::Finished).await?["proof"]["code"], "interrupted");
    completes_by(&silent, "listing").await
}

#[tokio::test]
async fn del_03_cut_at_the_publish_the_checksum_settles_it_later() -> anyhow::Result<()> {
    // Nothing is promised that would make a listing enough.
    let mut plan = agreed("one_name_space = true");
    plan.manifest = plan.manifest.replace("read_back_mib = 0", "read_back_mib = 1");
    let silent = cut_at_the_publish(When::After, plan).await?;
    completes_by(&silent, "checksum").await
}

#[tokio::test]
async fn del_03_cut_at_the_publish_a_tied_acknowledgment_settles_it_later() -> anyhow::Result<()> {
    let contract = "[contract.acknowledgment]\nname = '{final}.ack'\naccept = '^ok (?P<key>\\S+) (?P<attempt>\\S+)'\nperiod_seconds = 3600";
    let silent = cut_at_the_publish(When::After, agreed(contract)).await?;
    // The partner took the file, so neither listing nor checksum is left.
    assert!(silent.server.collect(&silent.name()));
    assert_eq!(silent.looked().await?, [Looked::Open]);
    let job = silent.house.job(silent.job).await?;
    let words = format!("ok {} {}\n", job.delivery_key, job.attempt.unwrap_or_default());
    silent.server.put(&format!("{}.ack", silent.name()), words)?;
    completes_by(&silent, "acknowledged_attempt").await
}

#[tokio::test]
async fn del_03_cut_at_a_publish_that_did_not_happen_it_is_unknown_until_the_temporary_is_removed() -> anyhow::Result<()>
{
    let silent = cut_at_the_publish(When::Before, agreed(ONE_STEP)).await?;
    assert_eq!(silent.server.read(&silent.name()), None);
    assert_eq!(silent.looked().await?, [Looked::Removed]);
    assert_eq!(silent.stands().await?, UNKNOWN);
    assert_eq!(silent.looked().await?, [Looked::Reconciled(Status::Failed)]);
    assert_eq!(silent.stands().await?, NOT_DELIVERED);
    assert_eq!(silent.detail(EventKind::Reconciled).await?["proof"]["conclusion"], "temporary_removed");
    Ok(())
}

#[tokio::test]
async fn del_03_cut_between_the_two_steps_of_a_rename_only_the_checksum_settles_it() -> anyhow::Result<()> {
    let contract = "publishes_whole = true\none_name_space = true\nmay_remove_temporaries = true";
    let silent = cut_at_the_publish(When::Between, agreed(contract)).await?;
    for _ in 0..2 {
        assert_eq!(silent.looked().await?, [Looked::Open]);
        assert_eq!((silent.stands().await?, silent.removals().await?), (UNKNOWN, 0));
    }
    let mut plan = agreed(contract);
    plan.manifest = plan.manifest.replace("read_back_mib = 0", "read_back_mib = 1");
    let silent = cut_at_the_publish(When::Between, plan).await?;
    completes_by(&silent, "checksum").await
}

#[tokio::test]
async fn del_03_cut_right_after_an_acknowledged_publish_it_is_unknown_until_a_later_look() -> anyhow::Result<()> {
    let mut renamed = false;
    let silent = Silent::ended(renames(), agreed(ONE_STEP), move |name, event| {
        if !event.path.ends_with(name) {
            return None;
        }
        let cut = renamed && event.action == Action::Stat;
        renamed |= event.when == When::After && event.action == Action::Rename;
        cut.then_some(Fault::Cut).inspect(|_| renamed = false)
    })
    .await?;
    assert_eq!(silent.stands().await?, UNKNOWN);
    let acknowledged = silent
        .evidence()
        .await?
        .into_iter()
        .any(|one| matches!(one, Evidence::Publish { answer: Answer::Acknowledged, .. }));
    assert!(acknowledged, "the journal does not say that the publish was acknowledged");
    completes_by(&silent, "listing").await
}

/// A job on its way to OpenSSH, held on this side of the `nth` evidence that is appended; the server is gone by then.
async fn openssh_gone(nth: usize) -> anyhow::Result<(Sshd, House, uuid::Uuid)> {
    let mut server = Sshd::start().await?;
    let house = House::before(&Reach::openssh(&server)?, Plan { renew_every: LONG, ..agreed(ONE_STEP) }).await?;
    let line = Proxy::before(&house.database)?;
    let (_worker, _dispatcher) = (house.worker_on(&line).await?, house.dispatcher().await?);
    house.until(house.create().await?, Status::Completed).await?;
    let gate = Gate::default();
    let _struck = line.at_nth("append_evidence", nth, LineFault::hold(Moment::After, gate.clone()));
    let id = house.create().await?;
    gate.reached().await?;
    server.stop().await?;
    gate.open();
    house.until_ended(id).await?;
    server.start_again().await?;
    Ok((server, house, id))
}

#[tokio::test]
async fn del_03_openssh_gone_before_the_first_byte_there_is_no_final_name_and_it_is_not_delivered() -> anyhow::Result<()>
{
    let (server, house, id) = openssh_gone(1).await?;
    let job = house.job(id).await?;
    assert_eq!((job.status, job.failure_reason), NOT_DELIVERED);
    assert_eq!(server.times_created(&House::final_name(id))?, 0);
    assert!(!server.files().join(House::final_name(id)).exists());
    Ok(())
}

#[tokio::test]
async fn del_03_openssh_gone_after_the_publish_it_is_unknown_until_it_is_back() -> anyhow::Result<()> {
    let (server, house, id) = openssh_gone(2).await?;
    let job = house.job(id).await?;
    assert_eq!((job.status, job.failure_reason), UNKNOWN);
    house.look_is_due(id).await?;
    assert_eq!(house.reconciler().await?.run_once().await?, [Looked::Reconciled(Status::Completed)]);
    assert_eq!(server.times_created(&House::final_name(id))?, 1);
    assert!(server.files().join(House::final_name(id)).exists());
    Ok(())
}

#[tokio::test]
async fn plg_03_past_cutoff_two_a_trap_is_judged_by_the_journal_and_completes_nothing_by_itself() -> anyhow::Result<()>
{
    for (behaviour, stands, code) in
        [("panic-after-send", NOT_DELIVERED, "never_sent"), ("panic-after-publish", UNKNOWN, "interrupted")]
    {
        let destination =
            format!("settings = {{ name = 'contacts-{{key}}.csv', query = 'rows', behaviour = '{behaviour}' }}\n");
        let plan = Plan { plugin: "misbehaving-destination", destination, ..agreed(ONE_STEP) };
        let silent = Silent::ended(renames(), plan, |_, _| None).await?;
        assert_eq!(silent.stands().await?, stands, "{behaviour}");
        assert_eq!(silent.detail(EventKind::Finished).await?["proof"]["code"], code, "{behaviour}");
        if stands == UNKNOWN {
            completes_by(&silent, "listing").await?;
        }
    }
    Ok(())
}
