import Expectations
import Foundation
import StrataLocks
import Testing

#if FaultPoints
/// Features of builds with the trait `FaultPoints`.
///
/// They run in separate processes, since handlers and switches count for a whole process.
@Suite("Fault points, in a build that has them")
struct FaultPointTests {
    @Test func `a handler is called on the thread that reaches a point, and its error fails what can fail`() async {
        await #expect(processExitsWith: .success) {
            struct Failure: Error {}
            /// Reaches all points on one thread.
            func check() throws {
                for point in FaultPoint.allCases { try point.reach() }
                FaultPoint.handle { point in
                    guard point == .saveBegan else { return }
                    Thread.current.threadDictionary["reached"] = point.rawValue
                    throw Failure()
                }
                try FaultPoint.saveWritten.reach()
                expect(Thread.current.threadDictionary["reached"] == nil)
                expectThrows(Failure.self) { try FaultPoint.saveBegan.reach() }
                expectEqual(Thread.current.threadDictionary["reached"] as? String, "save.began")
                FaultPoint.saveBegan.pass()
                FaultPoint.handle(nil)
                try FaultPoint.saveBegan.reach()
            }
            try check()
        }
    }

    @Test func `a handler may reach points itself`() async {
        await #expect(processExitsWith: .success) {
            struct Failure: Error {}
            FaultPoint.handle { point in
                if point == .batchBegan { try FaultPoint.batchRow.reach() }
                if point == .batchRow { throw Failure() }
            }
            expectThrows(Failure.self) { try FaultPoint.batchBegan.reach() }
        }
    }

    @Test func `a guard is off once it is switched off, and no other with it`() async {
        await #expect(processExitsWith: .success) {
            expect(FaultGuard.allCases.allSatisfy { !$0.isOff })
            for (count, guarding) in FaultGuard.allCases.enumerated() {
                guarding.switchOff()
                expectEqual(FaultGuard.allCases.filter(\.isOff), Array(FaultGuard.allCases.prefix(count + 1)))
            }
        }
    }

    @Test func `points and guards have a name each`() {
        expect(FaultPoint.areBuiltIn)
        expect(!FaultPoint.allCases.isEmpty && !FaultGuard.allCases.isEmpty)
        expectEqual(Set(FaultPoint.allCases.map(\.rawValue)).count, FaultPoint.allCases.count)
        // Both kinds exist: points whose error fails an operation, and points that only report.
        expectEqual(Set(FaultPoint.allCases.map(\.canFail)), [true, false])
        expectEqual(Set(FaultGuard.allCases.map(\.rawValue)).count, FaultGuard.allCases.count)
        // These names are on the command line of `stress`, and in the list on the page about reliability.
        for name in [
            "no-failed-read-guard", "no-file-place-check", "no-loss-check", "no-version-marks", "no-revival-check",
            "no-doubt-asking", "no-number-check", "no-restoration-mark", "no-store-check", "no-run-check",
            "no-job-check",
        ] { expect(FaultGuard(rawValue: name) != nil, "\(name)") }
        expect(FaultGuard.allCases.allSatisfy { $0.rawValue.hasPrefix("no-") })
    }
}
#else
@Suite("Fault points, in a build without them")
struct FaultPointTests {
    @Test func `there are none, no handler is called, and no guard can be switched off`() throws {
        expect(!FaultPoint.areBuiltIn && FaultPoint.allCases.isEmpty && FaultGuard.allCases.isEmpty)
        expect(MemoryLayout<FaultPoint>.size == 0 && MemoryLayout<FaultGuard>.size == 0)
        FaultPoint.handle { _ in throw CocoaError(.fileWriteOutOfSpace) }
        try FaultPoint.saveBegan.reach()
        FaultPoint.saveCommitted.pass()
        expect(FaultGuard(rawValue: "no-version-check") == nil)
        FaultGuard.versionCheck.switchOff()
        expect(!FaultGuard.versionCheck.isOff)
    }
}
#endif
