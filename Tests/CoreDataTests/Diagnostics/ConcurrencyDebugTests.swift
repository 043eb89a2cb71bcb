import CoreData
import Expectations
import StrataRows
import TestSupport
import Testing

/// The values of the switch.
///
/// The confinement tests check its effect.
@Suite("The switch for confinement")
struct ConcurrencyDebugTests {
    private static let name = "com.apple.CoreData.ConcurrencyDebug"

    private static let meanings: [(String, ConcurrencyDebug?)] = [
        ("1", .trap), ("3", .trap), ("0", .off), ("-1", .off), ("warn", .warn), ("yes", nil), ("", nil),
    ]

    @Test(arguments: meanings)
    func `in the environment`(_ value: String, _ asked: ConcurrencyDebug?) {
        expectEqual(ConcurrencyDebug.asked(environment: [Self.name: value], arguments: ["server"]), asked)
    }

    @Test(arguments: meanings)
    func `among the arguments`(_ value: String, _ asked: ConcurrencyDebug?) {
        let arguments = ["server", "-" + Self.name, value]
        expectEqual(ConcurrencyDebug.asked(environment: [:], arguments: arguments), asked)
    }

    @Test func `an argument without a value says nothing`() {
        expectEqual(ConcurrencyDebug.asked(environment: [:], arguments: ["server", "-" + Self.name]), nil)
    }

    @Test func `the environment has the last word`() {
        let arguments = ["server", "-" + Self.name, "1"]
        expectEqual(ConcurrencyDebug.asked(environment: [Self.name: "0"], arguments: arguments), .off)
    }

    @Test func `without a setting, it says nothing`() {
        expectEqual(ConcurrencyDebug.asked(environment: ["PATH": "/bin"], arguments: ["server", "--port", "1"]), nil)
    }

    @Test func `the program of all tests is a test process, and a server is none`() {
        expect(ConcurrencyDebug.isTestProcess(arguments: [".build/debug/AppPackageTests.xctest", "--filter", "City"]))
        expect(!ConcurrencyDebug.isTestProcess(arguments: ["server", "tests.xctest"]))
        expect(!ConcurrencyDebug.isTestProcess(arguments: []))
    }

    @Test func `by default a debug build traps, but warns in a test process`() {
        expectEqual(ConcurrencyDebug.byDefault(isTestProcess: false), .trap)
        expectEqual(ConcurrencyDebug.byDefault(isTestProcess: true), .warn)
    }
}
