import CoreData
import StrataSQLiteStore
import StrataStoreChecks

/// The forms that a model can be printed in.
enum ModelForm: String, CaseIterable {
    /// Columns for readers.
    case text
    /// One object for programs.
    case json
    /// The XML that Xcode saves.
    case xml
    /// Classes that describe their entities.
    case swift
    /// The statements that make a store for it.
    case sql
    /// A picture in the language of Mermaid.
    case mermaid

    /// The model in this form.
    func lines(of model: NamedModel) throws -> [String] {
        switch self {
        case .text: ModelCommand.lines(of: model.model)
        case .json: [ModelJSON.json(of: model.model).text]
        case .xml: [model.xmlText.hasSuffix("\n") ? String(model.xmlText.dropLast()) : model.xmlText]
        case .swift: ModelSwiftWriter.lines(of: model.model, name: model.name, remark: model.remark)
        case .sql: try SQLiteSchema(for: Self.copy(model.model)).statements.map { $0 + ";" }
        case .mermaid: ModelMermaid.lines(of: model.model)
        }
    }

    /// A copy for making a schema, without the classes that the model names, which are not in this program.
    private static func copy(_ model: NSManagedObjectModel) -> NSManagedObjectModel {
        let copy = NSManagedObjectModel(byMerging: [model]) ?? model
        for entity in copy.entities { entity.managedObjectClassName = "NSManagedObject" }
        return copy
    }
}
