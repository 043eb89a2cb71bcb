import Foundation

/// Runs when the test program is loaded, before anything reads the switch.
///
/// Without it, a test process would only warn of a use outside of a
/// context's scope; the tests of this package stop there. A value that the environment already has stays.
@section(".init_array") @used
private let trapsOfViolations: @convention(c) () -> Void = { setenv("com.apple.CoreData.ConcurrencyDebug", "1", 0) }
