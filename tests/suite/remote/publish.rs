//! One publish an attempt, whatever happens to it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use waybill::job::contract::{Acknowledgment, Contract};
use waybill::job::evidence::{Answer, PublishForm};
use waybill::job::facts::Found;
use waybill::job::names::NamePattern;
use waybill::remote::{Names, Reader, RemoteError, Sent};
use waybill_tests::operations::Operation;
use waybill_tests::sftp_server::{Action, Behaviour, Fault, HardLink, RenameOver, When};

use super::{PATIENCE, Partner, Record, built, losing, names, names_with_sum, writer};

const FORMS: [(PublishForm, Action); 5] = [
    (PublishForm::Link, Action::Link),
    (PublishForm::Rename, Action::Rename),
    (PublishForm::PosixRename, Action::PosixRename),
    (PublishForm::RenameOver, Action::Rename),
    (PublishForm::ExclusiveCreate, Action::Open),
];

fn behaviour(form: PublishForm) -> Behaviour {
    let rename_over = if form == PublishForm::RenameOver { RenameOver::Replaces } else { RenameOver::Refuses };
    Behaviour { rename_over, ..Behaviour::default() }
}

async fn publish(writer: &waybill::remote::Writer, form: PublishForm) -> Result<(), RemoteError> {
    if form.overwrites() { writer.publish_over().await } else { writer.publish().await }
}

#[tokio::test]
async fn fen_09_each_form_sends_whole_then_fences_then_publishes_once() -> anyhow::Result<()> {
    for (form, _) in FORMS {
        let partner = Partner::start(behaviour(form)).await?;
        if form.overwrites() {
            partner.server.put("k.csv", "old")?;
        }
        let (session, names, record) = (partner.session().await?, names("k")?, Arc::new(Record::default()));
        let file = built(&partner.directory, b"id;name\n1;a\n").await?;
        let server = Arc::new(partner.server);
        record.when_asked({
            let (server, form) = (Arc::clone(&server), form);
            move || {
                let operations: Vec<Operation> = server.operations().into_iter().map(|done| done.operation).collect();
                if form == PublishForm::ExclusiveCreate {
                    assert!(!operations.iter().any(|operation| operation.creates().is_some()), "{operations:?}");
                    return;
                }
                let closed = operations.iter().position(|it| matches!(it, Operation::Close { .. })).unwrap();
                let stat = operations.iter().rposition(|it| matches!(it, Operation::Stat { .. })).unwrap();
                assert!(closed < stat && stat == operations.len() - 1, "closed, size read back, then the fence");
            }
        });
        let writer = writer(&session, &names, &file, form, &record);
        assert!(matches!(publish(&writer, form).await, Err(RemoteError::Forbidden { .. })), "nothing is sent yet");
        let sent = writer.send().await?;
        assert_eq!((sent.bytes, sent.temporary.is_some()), (12, form != PublishForm::ExclusiveCreate));
        publish(&writer, form).await?;
        for second in [writer.publish().await, writer.publish_over().await, writer.send().await.map(drop)] {
            assert!(matches!(second, Err(RemoteError::Forbidden { .. })), "{form:?}: {second:?}");
        }
        assert_eq!(server.read("k.csv").as_deref(), Some(&b"id;name\n1;a\n"[..]), "{form:?}");
        assert_eq!(server.times_created("k.csv"), 1, "{form:?}");
        assert_eq!(server.names_in("").len(), 1, "the temporary name is gone: {:?}", server.names_in(""));
        assert_eq!((record.intended(), record.answers()), (1, vec![(form, Answer::Acknowledged)]));
        let sending = writer.outcome(PATIENCE).await;
        assert_eq!(sending.publish, Some((form, Answer::Acknowledged)));
        // What is sent at the publish is read back there.
        assert_eq!((sent.read_back, sending.sent), (form.has_temporary(), Some(Sent { read_back: true, ..sent })));
        assert_eq!(sending.temporary_removed, (form == PublishForm::Link).then_some(true));
    }
    Ok(())
}

#[tokio::test]
async fn del_09_a_temporary_file_that_we_did_not_make_is_not_removed() -> anyhow::Result<()> {
    let partner = Partner::start(behaviour(PublishForm::Link)).await?;
    let (session, names, record) = (partner.session().await?, names("k")?, Arc::new(Record::default()));
    let file = built(&partner.directory, b"content").await?;
    let temporary = names.temporary.clone().unwrap();
    partner.server.put(&temporary, "somebody's")?;
    let writer = writer(&session, &names, &file, PublishForm::Link, &record);
    assert!(matches!(writer.send().await, Err(RemoteError::Refused { .. })));
    assert_eq!(writer.leftover(), None);
    assert!(matches!(writer.publish().await, Err(RemoteError::Forbidden { .. })));
    assert_eq!(partner.server.read(&temporary).as_deref(), Some(&b"somebody's"[..]));
    Ok(())
}

#[tokio::test]
async fn fen_01_an_attempt_that_knows_that_it_lost_the_job_begins_nothing() -> anyhow::Result<()> {
    let partner = Partner::start(behaviour(PublishForm::Link)).await?;
    let (session, names, record) = (partner.session().await?, names("k")?, Arc::new(Record::default()));
    let file = built(&partner.directory, b"content").await?;
    let lost = CancellationToken::new();
    let writer = losing(&session, &names, &file, PublishForm::Link, &record, &lost);
    let before = partner.server.operations().len();
    lost.cancel();
    assert!(matches!(writer.send().await, Err(RemoteError::NotSent { .. })));
    assert!(matches!(writer.publish().await, Err(RemoteError::Forbidden { .. })));
    assert_eq!((partner.server.operations().len(), record.intended()), (before, 0));
    Ok(())
}

#[tokio::test]
async fn del_10_the_data_waits_for_what_comes_before_it() -> anyhow::Result<()> {
    // What becomes of the file that comes first, and whether the data may follow.
    for (becomes, follows) in [("put", true), ("found", true), ("refused", false), ("left out", false)] {
        let partner = Partner::start(behaviour(PublishForm::Link)).await?;
        let (session, names, record) = (partner.session().await?, names_with_sum("k")?, Arc::new(Record::default()));
        let file = built(&partner.directory, b"content").await?;
        let writer = writer(&session, &names, &file, PublishForm::Link, &record);
        writer.send().await?;
        match becomes {
            "put" => writer.put("k.sum", b"c0".to_vec()).await?,
            "found" => {
                partner.server.put("k.sum", "c0")?;
                assert!(matches!(writer.put("k.sum", b"c0".to_vec()).await, Err(RemoteError::Refused { .. })));
            }
            "refused" => {
                partner.server.once(When::Before, Action::Open, Fault::refuse(3, "no more files here"));
                assert!(matches!(writer.put("k.sum", b"c0".to_vec()).await, Err(RemoteError::Refused { .. })));
            }
            _ => {}
        }
        match writer.publish().await {
            Ok(()) => assert!(follows, "{becomes}"),
            Err(error) => {
                let RemoteError::Forbidden { why } = &error else { panic!("{becomes}: {error:?}") };
                assert!(!follows && why.contains("k.sum"), "{becomes}: {why}");
            }
        }
        assert_eq!(partner.server.times_created("k.csv"), usize::from(follows), "{becomes}");
    }
    Ok(())
}

#[tokio::test]
async fn fen_09_a_cut_publish_is_unanswered_and_never_sent_again() -> anyhow::Result<()> {
    for (form, action) in FORMS {
        for when in [When::Before, When::After] {
            let partner = Partner::start(behaviour(form)).await?;
            let (session, names, record) = (partner.session().await?, names("k")?, Arc::new(Record::default()));
            let file = built(&partner.directory, b"content").await?;
            let writer = writer(&session, &names, &file, form, &record);
            writer.send().await?;
            partner.server.once(when, action, Fault::Cut);
            let lost = publish(&writer, form).await;
            assert!(matches!(lost, Err(RemoteError::Unknown { .. })), "{form:?} {when:?}: {lost:?}");
            assert!(matches!(publish(&writer, form).await, Err(RemoteError::Forbidden { .. })));
            assert!(matches!(writer.put("k.csv.done", Vec::new()).await, Err(RemoteError::Forbidden { .. })));
            assert_eq!(writer.leftover(), None, "it may still be published");
            assert_eq!(partner.server.times_created("k.csv"), 1);
            let answers = record.answers();
            assert!(matches!(&answers[..], [(_, Answer::Unanswered { .. })]), "{answers:?}");
            assert_eq!(writer.outcome(PATIENCE).await.publish, answers.into_iter().next());
        }
    }
    Ok(())
}

#[tokio::test]
async fn fen_01_a_fence_that_refuses_leaves_no_publish_in_the_servers_log() -> anyhow::Result<()> {
    for (form, _) in FORMS {
        let partner = Partner::start(behaviour(form)).await?;
        let (session, names, record) = (partner.session().await?, names("k")?, Arc::new(Record::default()));
        let file = built(&partner.directory, b"content").await?;
        let writer = writer(&session, &names, &file, form, &record);
        writer.send().await?;
        record.refuses.store(true, Ordering::SeqCst);
        let lost = publish(&writer, form).await.unwrap_err();
        assert!(matches!(&lost, RemoteError::NotSent { why } if why.contains("lost the job")), "{lost:?}");
        assert!(publish(&writer, form).await.is_err() && writer.put("k.csv.done", Vec::new()).await.is_err());
        assert_eq!(partner.server.times_created("k.csv") + partner.server.times_created("k.csv.done"), 0);
        assert_eq!(writer.outcome(PATIENCE).await.publish, None, "never sent");
        assert!(record.answers().is_empty());
        if form != PublishForm::ExclusiveCreate {
            assert_eq!(writer.leftover(), names.temporary);
        }
    }
    Ok(())
}

#[tokio::test]
async fn fen_01_an_auxiliary_file_waits_for_the_fence_too() -> anyhow::Result<()> {
    let partner = Partner::start(Behaviour::default()).await?;
    let (session, names, record) = (partner.session().await?, names_with_sum("k")?, Arc::new(Record::default()));
    let file = built(&partner.directory, b"content").await?;
    let writer = writer(&session, &names, &file, PublishForm::Link, &record);
    assert!(matches!(writer.put("k.sum", b"c0".to_vec()).await, Err(RemoteError::Forbidden { .. })), "send first");
    writer.send().await?;
    assert!(
        matches!(writer.put("k.csv.done", Vec::new()).await, Err(RemoteError::Forbidden { .. })),
        "after the publish"
    );
    assert_eq!(record.intended(), 0);
    writer.put("k.sum", b"c0".to_vec()).await?;
    assert_eq!(record.intended(), 1);
    assert!(matches!(writer.put("k.sum", b"c1".to_vec()).await, Err(RemoteError::Forbidden { .. })), "once");
    writer.publish().await?;
    writer.put("k.csv.done", Vec::new()).await?;
    assert_eq!(record.intended(), 1, "one fence an attempt");
    assert_eq!(partner.server.read("k.sum").as_deref(), Some(&b"c0"[..]));
    let put = writer.outcome(PATIENCE).await.put;
    let put: Vec<_> = put.iter().map(|put| (put.name.as_str(), put.trigger, &put.answer)).collect();
    assert_eq!(put, [("k.sum", false, &Answer::Acknowledged), ("k.csv.done", true, &Answer::Acknowledged)]);
    Ok(())
}

#[tokio::test]
async fn del_04_a_file_that_appears_before_the_publish_is_not_replaced() -> anyhow::Result<()> {
    for form in [PublishForm::Link, PublishForm::Rename, PublishForm::ExclusiveCreate] {
        let partner = Partner::start(behaviour(form)).await?;
        let (session, names, record) = (partner.session().await?, names("k")?, Arc::new(Record::default()));
        let file = built(&partner.directory, b"ours").await?;
        let writer = writer(&session, &names, &file, form, &record);
        assert_eq!(session.stat("k.csv").await?, Found::Absent);
        writer.send().await?;
        partner.server.put("k.csv", "somebody else's")?;
        let refused = writer.publish().await.unwrap_err();
        assert!(matches!(refused, RemoteError::Refused { code: Some(_), .. }), "{form:?}: {refused:?}");
        assert_eq!(partner.server.read("k.csv").as_deref(), Some(&b"somebody else's"[..]));
        let answers = record.answers();
        assert!(matches!(&answers[..], [(_, Answer::Refused { code: Some(_), .. })]), "{answers:?}");
        if form != PublishForm::ExclusiveCreate {
            assert!(partner.server.read(".attempt-k.part").is_some(), "ours is still there, to be looked at");
            assert_eq!(writer.leftover(), names.temporary);
        }
    }
    Ok(())
}

#[tokio::test]
async fn del_05_a_link_that_is_not_seen_is_unanswered_and_its_temporary_stays() -> anyhow::Result<()> {
    let partner = Partner::start(Behaviour { hard_link: HardLink::Lies, ..Behaviour::default() }).await?;
    let (session, names, record) = (partner.session().await?, names("k")?, Arc::new(Record::default()));
    let file = built(&partner.directory, b"ours").await?;
    let writer = writer(&session, &names, &file, PublishForm::Link, &record);
    writer.send().await?;
    assert!(matches!(writer.publish().await, Err(RemoteError::Unknown { .. })));
    assert!(matches!(&record.answers()[..], [(PublishForm::Link, Answer::Unanswered { .. })]));
    assert!(writer.put("k.csv.done", Vec::new()).await.is_err(), "no trigger for a file that may not be there");
    assert_eq!(partner.server.read(".attempt-k.part").as_deref(), Some(&b"ours"[..]));
    Ok(())
}

/// The server keeps another size under this name than was written there.
fn keeps_otherwise(partner: &Partner, name: &'static str, bytes: u64) {
    partner.server.hook(move |event| {
        let here = event.when == When::Before && event.action == Action::Stat && event.path.ends_with(name);
        here.then_some(Fault::ReportSize(bytes))
    });
}

#[tokio::test]
async fn del_03_a_linked_name_of_another_size_is_no_confirmed_publish_and_its_temporary_stays() -> anyhow::Result<()> {
    let partner = Partner::start(Behaviour::default()).await?;
    let (session, names, record) = (partner.session().await?, names("k")?, Arc::new(Record::default()));
    let file = built(&partner.directory, b"content").await?;
    let writer = writer(&session, &names, &file, PublishForm::Link, &record);
    writer.send().await?;
    keeps_otherwise(&partner, "k.csv", 3);
    let other = writer.publish().await.unwrap_err();
    assert!(matches!(&other, RemoteError::Unknown { why } if why.contains("shows it with 3 bytes")), "{other:?}");
    let answers = record.answers();
    assert!(matches!(&answers[..], [(PublishForm::Link, Answer::Unanswered { .. })]), "{answers:?}");
    assert!(writer.put("k.csv.done", Vec::new()).await.is_err(), "no trigger for a file that is not whole");
    assert_eq!(writer.leftover(), None);
    assert_eq!(partner.server.read(".attempt-k.part").as_deref(), Some(&b"content"[..]));
    assert_eq!(partner.server.times_created("k.csv.done"), 0);
    assert_eq!(writer.outcome(PATIENCE).await.publish, answers.into_iter().next());
    Ok(())
}

#[tokio::test]
async fn del_10_a_file_beside_the_data_that_is_kept_otherwise_is_not_confirmed_and_the_data_waits() -> anyhow::Result<()>
{
    for (shown, told) in [(Some(1), "shows 1 bytes of 2"), (None, "shows no file")] {
        let partner = Partner::start(Behaviour::default()).await?;
        let (session, names, record) = (partner.session().await?, names_with_sum("k")?, Arc::new(Record::default()));
        let file = built(&partner.directory, b"content").await?;
        let writer = writer(&session, &names, &file, PublishForm::Link, &record);
        writer.send().await?;
        match shown {
            Some(bytes) => keeps_otherwise(&partner, "k.sum", bytes),
            None => partner.server.set_behaviour(Behaviour::default().collecting(|name| name.ends_with("k.sum"))),
        }
        let put = writer.put("k.sum", b"c0".to_vec()).await.unwrap_err();
        assert!(matches!(&put, RemoteError::Unknown { why } if why.contains(told)), "{put:?}");
        let early = writer.publish().await.unwrap_err();
        assert!(matches!(&early, RemoteError::Forbidden { why } if why.contains("k.sum")), "{early:?}");
        assert_eq!(partner.server.times_created("k.csv"), 0, "{told}");
        let beside = writer.outcome(PATIENCE).await.put;
        let [one] = &beside[..] else { panic!("{beside:?}") };
        assert!(one.name == "k.sum" && matches!(one.answer, Answer::Unanswered { .. }), "{one:?}");
    }
    Ok(())
}

#[tokio::test]
async fn del_10_a_trigger_that_is_kept_otherwise_is_not_confirmed() -> anyhow::Result<()> {
    let partner = Partner::start(Behaviour::default()).await?;
    let (session, names, record) = (partner.session().await?, names("k")?, Arc::new(Record::default()));
    let file = built(&partner.directory, b"content").await?;
    let writer = writer(&session, &names, &file, PublishForm::Link, &record);
    writer.send().await?;
    writer.publish().await?;
    keeps_otherwise(&partner, "k.csv.done", 9);
    let put = writer.put("k.csv.done", Vec::new()).await.unwrap_err();
    assert!(matches!(&put, RemoteError::Unknown { why } if why.contains("shows 9 bytes of 0")), "{put:?}");
    let sending = writer.outcome(PATIENCE).await;
    assert_eq!(sending.publish, Some((PublishForm::Link, Answer::Acknowledged)));
    let [one] = &sending.put[..] else { panic!("{:?}", sending.put) };
    assert!(one.trigger && matches!(one.answer, Answer::Unanswered { .. }), "{one:?}");
    Ok(())
}

#[tokio::test]
async fn fen_09_only_what_was_sent_whole_is_published() -> anyhow::Result<()> {
    let partner = Partner::start(Behaviour::default()).await?;
    let (session, names, record) = (partner.session().await?, names("k")?, Arc::new(Record::default()));
    let file = built(&partner.directory, b"content").await?;
    let writer = writer(&session, &names, &file, PublishForm::Rename, &record);
    partner.server.once(When::Before, Action::Stat, Fault::ReportSize(3));
    let short = writer.send().await.unwrap_err();
    assert!(matches!(&short, RemoteError::Refused { code: None, text } if text.contains("3 bytes of 7")), "{short:?}");
    assert!(matches!(writer.publish().await, Err(RemoteError::Forbidden { .. })));
    assert_eq!((record.intended(), partner.server.times_created("k.csv")), (0, 0));
    assert_eq!(writer.leftover(), names.temporary);
    Ok(())
}

#[tokio::test]
async fn a_publish_whose_call_is_dropped_is_finished_and_journaled() -> anyhow::Result<()> {
    let partner = Partner::start(Behaviour::default()).await?;
    let (session, names, record) = (partner.session().await?, names("k")?, Arc::new(Record::default()));
    let file = built(&partner.directory, b"content").await?;
    let writer = writer(&session, &names, &file, PublishForm::Rename, &record);
    writer.send().await?;
    let gate = partner.server.hold(When::Before, Action::Rename);
    let call = tokio::spawn({
        let writer = writer.clone();
        async move { writer.publish().await }
    });
    gate.reached().await?;
    call.abort();
    let early = writer.outcome(std::time::Duration::from_millis(10)).await;
    assert!(matches!(early.publish, Some((_, Answer::Unanswered { .. }))), "in flight is not answered: {early:?}");
    gate.open();
    let sending = writer.outcome(PATIENCE).await;
    assert_eq!(sending.publish, Some((PublishForm::Rename, Answer::Acknowledged)));
    assert_eq!(record.answers(), [(PublishForm::Rename, Answer::Acknowledged)]);
    Ok(())
}

#[tokio::test]
async fn plg_04_a_reader_sees_declared_names_only_and_stops_when_told() -> anyhow::Result<()> {
    let partner = Partner::start(Behaviour::default()).await?;
    partner.server.put("k.csv", "ours")?;
    partner.server.put("other.csv", "another tenant's")?;
    let (session, stop) = (partner.session().await?, CancellationToken::new());
    let reader = Reader::new(session, names("k")?, stop.clone());
    let requests = partner.server.log().len();
    for name in ["other.csv", "../k.csv", "/k.csv", "./k.csv", "k.csv/", "", "."] {
        assert!(matches!(reader.stat(name).await, Err(RemoteError::Forbidden { .. })), "{name}");
        assert!(matches!(reader.read(name, 0, 10).await, Err(RemoteError::Forbidden { .. })), "{name}");
        assert!(matches!(reader.digest(name, "sha256"), Err(RemoteError::Forbidden { .. })), "{name}");
    }
    assert!(matches!(reader.entries("..", "", 10).await, Err(RemoteError::Forbidden { .. })));
    assert_eq!(partner.server.log().len(), requests, "nothing was sent");
    assert!(matches!(reader.stat("k.csv").await?, Found::Present(_)));
    assert_eq!(reader.read("k.csv", 1, 2).await?, b"ur");
    let entries: Vec<String> = reader.entries("", "", 10).await?.into_iter().map(|entry| entry.name).collect();
    assert_eq!(entries, ["k.csv"], "others' names are not shown");
    stop.cancel();
    assert_eq!(reader.stat("k.csv").await, Err(RemoteError::Stopped));
    Ok(())
}

#[tokio::test]
async fn lse_03_a_job_that_is_lost_during_the_upload_ends_it_and_lets_the_temporary_be_removed() -> anyhow::Result<()> {
    let partner = Partner::start(Behaviour::default()).await?;
    let (session, names, record) = (partner.session().await?, names("k")?, Arc::new(Record::default()));
    // Three blocks of the spool: two are read ahead, and the third is never asked for.
    let file = built(&partner.directory, &vec![b'x'; 3 * 512 * 1024]).await?;
    let lost = CancellationToken::new();
    let writer = losing(&session, &names, &file, PublishForm::Link, &record, &lost);
    let gate = partner.server.hold(When::Before, Action::Write);
    let sending = tokio::spawn({
        let writer = writer.clone();
        async move { writer.send().await }
    });
    gate.reached().await?;
    lost.cancel();
    gate.open();
    let error = sending.await?.unwrap_err();
    assert!(matches!(&error, RemoteError::NotSent { why } if why.contains("lost the job")), "{error:?}");
    let temporary = names.temporary.clone().unwrap();
    let sent = partner.server.read(&temporary).map(|bytes| bytes.len());
    assert!(sent.is_some_and(|sent| sent < 3 * 512 * 1024), "the upload went on to its end: {sent:?}");
    assert!(matches!(writer.publish().await, Err(RemoteError::Forbidden { .. })));
    let sending = writer.outcome(PATIENCE).await;
    assert_eq!((sending.sent, sending.publish), (None, None));
    assert_eq!(writer.leftover(), Some(temporary));
    Ok(())
}

#[tokio::test]
async fn lse_03_a_job_that_is_lost_past_the_fence_ends_nothing() -> anyhow::Result<()> {
    for (form, action) in [(PublishForm::Rename, Action::Rename), (PublishForm::ExclusiveCreate, Action::Write)] {
        let partner = Partner::start(behaviour(form)).await?;
        let (session, names, record) = (partner.session().await?, names("k")?, Arc::new(Record::default()));
        let file = built(&partner.directory, &vec![b'x'; 3 * 512 * 1024]).await?;
        let lost = CancellationToken::new();
        let writer = losing(&session, &names, &file, form, &record, &lost);
        writer.send().await?;
        let gate = partner.server.hold(When::Before, action);
        let publishing = tokio::spawn({
            let writer = writer.clone();
            async move { writer.publish().await }
        });
        gate.reached().await?;
        lost.cancel();
        gate.open();
        publishing.await??;
        let whole = partner.server.read("k.csv").map(|bytes| bytes.len());
        assert_eq!(whole, Some(3 * 512 * 1024), "{form:?}");
    }
    Ok(())
}

#[tokio::test]
async fn plg_04_what_the_contract_bounds_the_host_bounds() -> anyhow::Result<()> {
    const MOST_BYTES: usize = 65_536;
    const MOST_ENTRIES: usize = 1000;
    let partner = Partner::start(behaviour(PublishForm::Link)).await?;
    let acknowledgment = Acknowledgment {
        name: Some(NamePattern::parse("answers/*.txt")?),
        accept: Some("ok".to_owned()),
        refuse: None,
        duplicate: None,
        accept_name: None,
        refuse_name: None,
        period: Duration::from_secs(60),
    };
    let contract = Contract { acknowledgment: Some(acknowledgment), ..Contract::default() };
    let looked_at = Arc::new(Names::mint(&contract, None, "k.csv", "k", "attempt-k")?);
    partner.server.make_directory("answers")?;
    for number in 0..=MOST_ENTRIES {
        partner.server.put(&format!("answers/{number}.txt"), vec![b'x'; 1])?;
    }
    partner.server.put("answers/long.txt", vec![b'x'; MOST_BYTES + 1])?;
    let session = partner.session().await?;
    let reader = Reader::new(session.clone(), looked_at, CancellationToken::new());
    assert_eq!(reader.entries("answers", "", u32::MAX).await?.len(), MOST_ENTRIES);
    assert_eq!(reader.read("answers/long.txt", 0, u32::MAX).await?.len(), MOST_BYTES);

    let file = built(&partner.directory, b"content").await?;
    let writer = writer(&session, &names("k")?, &file, PublishForm::Link, &Arc::new(Record::default()));
    writer.send().await?;
    writer.publish().await?;
    let longer = writer.put("k.csv.done", vec![b'x'; MOST_BYTES + 1]).await;
    assert!(matches!(longer, Err(RemoteError::Invalid { .. })), "{longer:?}");
    writer.put("k.csv.done", vec![b'x'; MOST_BYTES]).await?;
    Ok(())
}
