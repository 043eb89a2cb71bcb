import CoreData
import Expectations
import TestSupport
import Testing

@Suite("What batches leave in the row cache")
struct BatchFreshnessTests {
    @Test(
        arguments: StoreKind.allCases,
        [NSBatchUpdateRequestResultType.statusOnlyResultType, .updatedObjectIDsResultType]
    )
    func `a fault shows what a batch has stored, in contexts that merge nothing too`(
        _ kind: StoreKind,
        _ resultType: NSBatchUpdateRequestResultType
    ) throws {
        let stack = try Stack(kind)
        let (writer, reader, batches) = (stack.context(), stack.context(), stack.context())
        let id = try writer.performAndWait {
            let city = City(context: writer)
            city.name = "Porto"
            try writer.save()
            return city.objectID
        }
        try reader.performAndWait { () throws in
            // In the row cache, and realised here.
            expectEqual((try reader.existingObject(with: id) as? City)?.name, "Porto")
        }
        try batches.performAndWait {
            let request = NSBatchUpdateRequest(entityName: "City")
            request.propertiesToUpdate = ["name": "Rome"]
            request.resultType = resultType
            try batches.execute(request)
        }
        let fresh = stack.context()
        fresh.performAndWait { expectEqual((fresh.object(with: id) as? City)?.name, "Rome") }
        reader.performAndWait {
            let city = reader.object(with: id) as? City
            if let city { reader.refresh(city, mergeChanges: false) }
            expectEqual(city?.name, "Rome")
        }
    }
}
