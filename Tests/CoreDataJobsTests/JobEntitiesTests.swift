import CoreData
import CoreDataJobs
import Expectations
import Foundation
import TestSupport
import Testing

@Suite("Entities of jobs")
struct JobEntitiesTests {
    @Test func `the entities that the page shows for a file are the same as those of the classes`() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(contentsOf: root.appendingPathComponent("Docs/Jobs.md"), encoding: .utf8)
        let parts = page.components(separatedBy: "```xml\n")
        expectEqual(parts.count, 2)
        let fragment = try require(parts.last?.components(separatedBy: "```").first)
        let folder = try ScratchFolder()
        let model = folder.file("Jobs.xcdatamodel")
        try FileManager.default.createDirectory(at: model, withIntermediateDirectories: true)
        let contents = """
            <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
            <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" sourceLanguage="Swift">
            \(fragment)
            </model>
            """
        try Data(contents.utf8).write(to: model.appendingPathComponent("contents"))
        let read = try require(NSManagedObjectModel(contentsOf: model))
        let made = JobEntities.model()
        expectEqual(read.entityVersionHashesByName, made.entityVersionHashesByName)
        for (name, entity) in made.entitiesByName {
            let other = try require(read.entitiesByName[name])
            expectEqual(Set(other.indexes.map(\.name)), Set(entity.indexes.map(\.name)))
            expectEqual(other.managedObjectClassName, entity.managedObjectClassName)
            for (name, attribute) in entity.attributesByName {
                let (read, made) = (other.attributesByName[name]?.defaultValue, attribute.defaultValue)
                expectEqual(read.map { "\($0)" }, made.map { "\($0)" }, "\(name)")
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a model that was merged with the entities has jobs`(_ kind: StoreKind) async throws {
        let own = try NSManagedObjectModel(for: Note.self)
        let model = try require(NSManagedObjectModel(byMerging: [own, JobEntities.model()]))
        let stack = try Stack(kind, model: model)
        let context = stack.context()
        try await context.perform {
            try context.enqueue(Write(text: "merged"))
            try context.save()
        }
        let worker = JobWorker(stack.coordinator)
        worker.handle(Write.self) { run in
            try await run.perform { context in Note(context: context).text = run.job.text }
        }
        try await expectEqual(worker.drain().done, 1)
    }
}
