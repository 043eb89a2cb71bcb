import Expectations
import Testing

@testable import StrataMacroExpansion

@Suite("Expansion of @ManagedScalarAccess")
struct ManagedScalarAccessExpansionTests {
    @Test func `the functions are those of the type itself`() throws {
        let request = ExpansionRequest.sample("ManagedScalarAccessMacro", role: "member", "extension Int {}")
        let source = try require(ManagedScalarAccessMacro.expand(request).source)

        let names = [
            "managedRead", "managedWrite", "managedReadOptional", "managedWriteOptional", "managedGlance",
            "managedGlanceOptional", "managedGlanceWrite",
        ]
        expect(
            source.split(separator: "public static func ").dropFirst().map { $0.prefix { $0 != "(" } }
                == names.map { $0[...] }
        )
    }

    @Test func `another role is refused`() {
        let request = ExpansionRequest.sample("ManagedScalarAccessMacro", role: "peer", "extension Int {}")
        expectEqual(ManagedScalarAccessMacro.expand(request).source, nil)
        expectEqual(ManagedScalarAccessMacro.expand(request).diagnostics.count, 1)
    }
}
