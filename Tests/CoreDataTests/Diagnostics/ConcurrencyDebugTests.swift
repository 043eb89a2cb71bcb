import CoreData
import StrataRows
import Testing

/// Release builds check confinement by this switch only; the checks themselves are tested in debug builds.
@Suite("The switch of release builds")
struct ConcurrencyDebugTests {
    private static let name = "com.apple.CoreData.ConcurrencyDebug"

    @Test(arguments: [("1", true), ("3", true), ("0", false), ("-1", false), ("yes", false), ("", false)])
    func `in the environment`(_ value: String, _ isAsked: Bool) {
        #expect(ConcurrencyDebug.isAsked(environment: [Self.name: value], arguments: ["server"]) == isAsked)
    }

    @Test(arguments: [(["1"], true), (["0"], false), ([], false), (["on"], false)])
    func `among the arguments`(_ rest: [String], _ isAsked: Bool) {
        let arguments = ["server", "-" + Self.name] + rest
        #expect(ConcurrencyDebug.isAsked(environment: [:], arguments: arguments) == isAsked)
    }

    @Test func `the environment has the last word`() {
        let arguments = ["server", "-" + Self.name, "1"]
        #expect(!ConcurrencyDebug.isAsked(environment: [Self.name: "0"], arguments: arguments))
    }

    @Test func `unless somebody asks, it is off`() {
        #expect(!ConcurrencyDebug.isAsked(environment: ["PATH": "/bin"], arguments: ["server", "--port", "1"]))
    }
}
