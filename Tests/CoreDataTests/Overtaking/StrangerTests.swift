import CoreData
import TestSupport
import Testing

@Suite("IDs of another coordinator")
struct StrangerTests {
    private func message(_ result: ExitTest.Result?) -> String {
        String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    }

    @Test func `a temporary one stops the program when it turns out to be permanent elsewhere`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let (own, other) = (try Stack(.memory), try Stack(.memory))
            _ = try own.storeCity("of this coordinator")
            let (context, elsewhere) = (own.context("here"), other.context())
            let id = elsewhere.performAndWait { City(context: elsewhere).objectID }
            try context.performAndWait {
                let stranger = context.object(with: id)
                try elsewhere.performAndWait {
                    (elsewhere.object(with: id) as? City)?.name = "of another coordinator"
                    try elsewhere.save()
                }
                _ = try context.all(City.self)
                print(stranger.value(forKey: "name") ?? "")
            }
        }
        #expect(message(result).contains("belongs to another coordinator"), "\(message(result))")
    }

    @Test func `in a tree as well`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let (own, other) = (try Stack(.memory), try Stack(.memory))
            let (parent, child) = own.pair()
            let elsewhere = other.context()
            let id = elsewhere.performAndWait { City(context: elsewhere).objectID }
            let stranger = child.performAndWait { child.object(with: id) }
            try elsewhere.performAndWait {
                (elsewhere.object(with: id) as? City)?.name = "of another coordinator"
                try elsewhere.save()
            }
            // Some other object of the tree becomes permanent.
            parent.insertCity("of this coordinator")
            try parent.saveAndWait()
            try child.performAndWait { _ = try child.all(City.self) }
            print(stranger.objectID)
        }
        #expect(message(result).contains("belongs to another coordinator"), "\(message(result))")
    }

    @Test func `a permanent one names no registered object here`() throws {
        let (own, other) = (try Stack(.memory), try Stack(.memory))
        let (id, same) = (try own.storeCity("here"), try other.storeCity("elsewhere"))
        #expect(id.uriRepresentation().lastPathComponent == same.uriRepresentation().lastPathComponent)
        let context = own.context()
        try context.performAndWait {
            let city = try context.get(id, City.self)
            #expect(context.registeredObject(for: id) === city)
            #expect(context.registeredObject(for: same) == nil)
        }
    }
}
