import CoreData

/// A model for what a tree does with hooks and with relationships that have no inverse.
package enum TreeModel {
    package static func make() -> NSManagedObjectModel {
        let note = GuideModel.entity("Note", DraftNote.self)
        note.properties = [
            GuideModel.attribute("text", .string), GuideModel.transient("draft", .string),
            GuideModel.relationship("next", .one(.nullifyDeleteRule), note),
            GuideModel.relationship("pages", .many(.nullifyDeleteRule), note),
        ]
        let model = NSManagedObjectModel()
        model.entities = [note]
        return model
    }
}

/// Tells which hooks were called, and in which context.
@ManagedObject
package final class DraftNote: NSManagedObject {
    @TaskLocal package static var log: Shared<[String]>?

    @Managed package var text: String?
    @Managed package var draft: String?
    @Managed package var next: DraftNote?
    @Managed package var pages: Set<DraftNote>

    private var place: String { managedObjectContext?.name ?? "nowhere" }

    private func tell(_ what: String) {
        let line = "\(what) \(place)"
        Self.log?.update { $0.append(line) }
    }

    package override func awakeFromInsert() {
        super.awakeFromInsert()
        text = "awake in \(place)"
        tell("insert")
    }
    package override func willSave() { tell("willSave") }
    package override func didSave() { tell("didSave") }
    package override func prepareForDeletion() { tell("delete") }
}
