import Foundation
import SwiftData

/// The work as a program does it with SwiftData's models.
enum ModelSide {
    static func container(in folder: String) throws -> ModelContainer {
        try ModelContainer(for: Berth.self, configurations: ModelConfiguration(url: file(in: folder)))
    }

    static func hasDatabase(in folder: String) -> Bool {
        FileManager.default.fileExists(atPath: file(in: folder).path)
    }

    private static func file(in folder: String) -> URL { URL(fileURLWithPath: folder + "/models.store") }

    static func fill(_ folder: String, scale: Scale) throws {
        let context = ModelContext(try container(in: folder))
        let quays = (0..<scale.cities).map { Quay(name: "City \($0)") }
        for number in 0..<scale.venues {
            let sample = VenueSample(number, scale: scale)
            let berth = Berth(sample)
            berth.quay = quays[sample.city]
            context.insert(berth)
        }
        try context.save()
    }

    /// Models with their values loaded.
    static func held(_ context: ModelContext, _ scale: Scale) throws -> [Berth] {
        var descriptor = FetchDescriptor<Berth>()
        descriptor.fetchLimit = scale.held
        let berths = try context.fetch(descriptor)
        for berth in berths { _ = berth.name }
        return berths
    }

    static func read(in folder: String, scale: Scale) throws -> Sample {
        let context = ModelContext(try container(in: folder))
        let berths = try held(context, scale)
        return Sample.measuring {
            var checksum = 0
            for _ in 0..<Scale.rounds {
                for berth in berths {
                    for _ in 0..<Scale.repetitions { checksum &+= attributeChecksum(of: berth) }
                }
            }
            return checksum
        }
    }

    static func write(in folder: String, scale: Scale) throws -> Sample {
        let context = ModelContext(try container(in: folder))
        let berths = try held(context, scale)
        let duration = measuredWork { write(berths) }
        return Sample(duration: duration, checksum: berths.reduce(0) { $0 &+ attributeChecksum(of: $1) })
    }

    static func readEverything(in folder: String) throws -> Sample {
        let context = ModelContext(try container(in: folder))
        // It goes after the work, so that no side is measured while it frees its objects.
        var berths: [Berth] = []
        return try Sample.measuring {
            berths = try context.fetch(FetchDescriptor<Berth>())
            var checksum = 0
            for berth in berths { checksum &+= Self.checksum(of: berth) }
            return checksum
        }
    }

    /// The bytes by which the process grows for each model, whose properties may all be read before.
    static func bytesPerObject(in folder: String, scale: Scale, isRead: Bool) throws -> Int {
        let context = ModelContext(try container(in: folder))
        return try ResidentMemory.growth(for: scale.venues) {
            let berths = try context.fetch(FetchDescriptor<Berth>())
            if isRead { for berth in berths { _ = checksum(of: berth) } }
            return berths
        }
    }

    // MARK: - Observable objects

    static func readObservable(scale: Scale) -> Sample {
        let moorings = moorings(scale)
        return Sample.measuring {
            var checksum = 0
            for _ in 0..<Scale.rounds {
                for mooring in moorings {
                    for _ in 0..<Scale.repetitions { checksum &+= attributeChecksum(of: mooring) }
                }
            }
            return checksum
        }
    }

    static func writeObservable(scale: Scale) -> Sample {
        let moorings = moorings(scale)
        let duration = measuredWork { write(moorings) }
        return Sample(duration: duration, checksum: moorings.reduce(0) { $0 &+ attributeChecksum(of: $1) })
    }

    private static func moorings(_ scale: Scale) -> [Mooring] {
        (0..<scale.held).map { Mooring(VenueSample($0, scale: scale)) }
    }

    // MARK: - Accesses

    @inline(__always)
    private static func write(_ objects: [some HeldObject]) {
        let names = VenueSample.newNames
        for _ in 0..<Scale.rounds {
            for object in objects {
                for step in 0..<Scale.repetitions {
                    object.name = names[step & 1]
                    object.price = Int16(truncatingIfNeeded: step)
                    object.distance = Double(step)
                    object.createdAt = Date(timeIntervalSinceReferenceDate: Double(step))
                    object.favorite = step & 1 == 0
                }
            }
        }
    }

    @inline(__always)
    private static func attributeChecksum(of object: some HeldObject) -> Int {
        let sum = object.name.utf8.count &+ Int(object.price) &+ Int(object.distance) &+ (object.favorite ? 1 : 0)
        return sum &+ Int(object.createdAt.timeIntervalSinceReferenceDate)
    }

    @inline(__always)
    private static func checksum(of berth: Berth) -> Int {
        attributeChecksum(of: berth) &+ (berth.quay == nil ? 0 : 1)
    }
}
