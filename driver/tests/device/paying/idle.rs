//! Models that nobody executes: what preparing one takes for a moment, and contexts that are kept for the next execution.

use super::*;

#[test]
fn a_rehearsal_is_paid_for_while_it_lasts_and_who_saves_energy_has_none() {
    const FLOATS: u32 = 20_000;
    let mut b = ModelBuilder::new();
    let x = b.input(OperandType::TensorFloat32, &[FLOATS]);
    let y = b.result_of(OperationType::Relu, &[x], OutputSpec::f32(&[FLOATS]));
    b.output(y);
    let model = b.build().unwrap();
    let most = |is_rehearsed: bool| {
        let purse = Purse::new(u64::MAX);
        let prepare = if is_rehearsed { prepare } else { prepare_only };
        let prepared = prepare(&model, &purse.caller()).unwrap();
        let (most, held) = (purse.most(), purse.charged());
        drop(prepared);
        assert_eq!(purse.charged(), 0);
        (most, held)
    };
    let (rehearsed, held) = most(true);
    let (not, held_without) = most(false);
    let values = 2 * 4 * u64::from(FLOATS);
    assert!(rehearsed >= held + values && not < values, "{rehearsed}, {not}");
    assert_eq!(held, held_without);
}

/// What an account refuses is there once contexts went that nobody uses, whichever model of the device
/// has them; those of other accounts stay.
#[test]
fn idle_contexts_of_all_models_of_an_account_go_before_it_is_refused() {
    let device = CpuDevice::default();
    let (purse, other) = (Purse::new(u64::MAX), Purse::new(u64::MAX));
    let options = PrepareOptions::default();
    let model = convolution();
    let prepare =
        |purse: &Arc<Purse>| device.prepare_model_for(&model, &options, &purse.caller()).unwrap();
    drop(prepare_only(&model, &purse.caller()).unwrap());
    let most = purse.most();
    let one = prepare(&purse);
    let cost = purse.charged();
    let (two, foreign) = (prepare(&purse), prepare(&other));
    let held = purse.charged();
    let run = |prepared: &Arc<dyn PreparedModel>| {
        let request = request(&model, 8 * 8 * 40 * 4);
        let result = prepared.execute_synchronously(&request, &ExecutionOptions::default());
        (result.status, request)
    };
    let output = |request: &Request| {
        let RequestPool::Memory(output) = &request.pools[1] else { panic!("memory") };
        let mut bytes = vec![0; 8 * 8 * 40 * 4];
        output.read(0, &mut bytes).unwrap();
        bytes
    };
    let (status, first) = run(&one);
    assert_eq!(status, ErrorStatus::None);
    run(&foreign);
    let with_one = purse.charged();
    let of_other = other.charged();
    assert!(with_one > held);
    // One context fits, and there are two models.
    purse.limit.store(with_one, Ordering::Relaxed);
    for prepared in [&two, &one, &two, &one] {
        let (status, request) = run(prepared);
        assert_eq!(status, ErrorStatus::None, "the other model's context went");
        assert_eq!(output(&request), output(&first), "and is made again with the same result");
        assert_eq!(purse.charged(), with_one);
    }
    // A burst, a preparation and a buffer find that room as well.
    let burst = Arc::clone(&two).open_burst().unwrap();
    assert!(purse.charged() > held, "its context is there before its first execution");
    drop(burst);
    purse.limit.store(held + most, Ordering::Relaxed);
    let third = prepare(&purse);
    assert_eq!(purse.charged(), held + cost, "the context went");
    drop(third);
    purse.limit.store(u64::MAX, Ordering::Relaxed);
    run(&one);
    purse.limit.store(with_one, Ordering::Relaxed);
    let roles = BufferRequest {
        models: vec![Arc::clone(&one)],
        inputs: vec![BufferRole { model: 0, position: 0, frequency: 1.0 }],
        ..BufferRequest::default()
    };
    let buffer = device.allocate(&roles, &purse.caller()).unwrap();
    assert!(purse.charged() < with_one);
    drop(buffer);
    assert_eq!(purse.charged(), held);
    assert_eq!(other.charged(), of_other, "what another account pays for stays");
}
